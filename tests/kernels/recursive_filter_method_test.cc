#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "kernels/recursive_filter/method.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/support/gpus.h"

// The choices for images from one pixel to 16384 x 8192, on GPUs that need not be there.

namespace cumulus {
namespace {

using recursive_filter::choose;
using recursive_filter::FilterElement;
using recursive_filter::ImagesShape;
using recursive_filter::LinesPlan;
using recursive_filter::OnChipPlan;
using recursive_filter::Plan;
using recursive_filter::planned_filter;
using recursive_filter::RefusalPlan;
using recursive_filter::RegisterTiles;
using recursive_filter::RegisterTilesPlan;
using recursive_filter::StripsPlan;
using recursive_filter::TiledPlan;
using Method = RecursiveFilterMethod;

using testing::kH200;
using testing::kRtx4090;
using testing::kSmallTuring;

constexpr auto kFloat = FilterElement::kFloat;
constexpr auto kHalf = FilterElement::kFloat16;
constexpr auto kDouble = FilterElement::kDouble;

RecursiveFilter filter_of(const std::string& name) {
  const auto both = [](const AxisFilter& axis) { return RecursiveFilter{axis, axis}; };
  const std::vector<double> five = {-0.5, 0.1, -0.2, 0.05, 0.1};
  const std::vector<double> one = {-0.5};
  if (name == "young 8") return both(gaussian_filter(8, FilterBoundary::kClamp));
  if (name == "map 8")
    return {gaussian_filter(8, FilterBoundary::kClamp), gaussian_filter(8, FilterBoundary::kRepeat)};
  if (name == "mirror 8") return both(gaussian_filter(8, FilterBoundary::kMirror));
  if (name == "reflect 8") return both(gaussian_filter(8, FilterBoundary::kReflect));
  if (name == "zero 8") return both(gaussian_filter(8, FilterBoundary::kZero));
  if (name == "deriche 8") return both(deriche_filter(8, 0, FilterBoundary::kClamp));
  if (name == "young 32") return both(gaussian_filter(32, FilterBoundary::kClamp));
  if (name == "young 400") return both(gaussian_filter(400, FilterBoundary::kClamp));
  if (name == "cubic") return both(bspline_prefilter(3, FilterBoundary::kReflect));
  if (name == "five poles") return both(feedback_filter(0.4, five, five, FilterBoundary::kClamp));
  if (name == "one way, mirror") return both(feedback_filter(1, one, {}, FilterBoundary::kMirror));
  if (name == "along x") return {{}, gaussian_filter(8, FilterBoundary::kClamp)};
  throw std::invalid_argument(name);
}

struct Described {
  std::string operator()(const LinesPlan& /*plan*/) const { return "lines"; }
  std::string operator()(const TiledPlan& /*plan*/) const { return "tiled"; }
  std::string operator()(const OnChipPlan& plan) const {
    std::string text = "on chip, " + std::to_string(plan.parts) + " threads a line";
    if (plan.channels_at_once < channels) {
      text += ", " + std::to_string(plan.channels_at_once);
      text += plan.channels_at_once == 1 ? " channel at once" : " channels at once";
    }
    return text + at_once(plan.images_at_once);
  }
  std::string operator()(const RegisterTilesPlan& plan) const {
    const std::string form = plan.form == RegisterTiles::kFew ? "few" : "large";
    return "registers, " + form + at_once(plan.images_at_once);
  }
  std::string operator()(const StripsPlan& plan) const {
    return "strips" + at_once(plan.division.images_at_once);
  }
  std::string operator()(const RefusalPlan& plan) const {
    if (plan.obstacle == MethodObstacle::kTiles) return "refused: tiles";
    if (plan.obstacle == MethodObstacle::kStrips) return "refused: strips";
    if (plan.obstacle == MethodObstacle::kTruncation) return "refused: truncation";
    return "refused: holds " + std::to_string(plan.tiles_on_chip);
  }
  std::int64_t images, channels;
  /// Where there are several, how many a launch takes.
  std::string at_once(std::int64_t count) const {
    return images == 1 ? "" : ", " + std::to_string(std::min(count, images)) + " at once";
  }
};

struct Row {
  std::int64_t height, width, channels, images;
  FilterElement element;
  std::string filter;
  RecursiveFilterChoice choice;
  std::string on_h200, on_rtx4090, on_small;  // the plan and its scratch bytes

  ImagesShape shape() const {
    const std::int64_t row = width * channels;
    const bool aligned = channels == 1 && width % 4 == 0;
    return {height, width, channels, images, row, element, aligned};
  }
  Plan plan(const DeviceNumbers& device) const {
    const auto planned =
        planned_filter(filter_of(filter), height, width, element == kDouble, choice.max_truncation_error);
    return choose(*planned, shape(), choice.method, device);
  }
  std::string chosen(const DeviceNumbers& device) const {
    const Plan of_device = plan(device);
    const std::size_t bytes = scratch_bytes_of(of_device);
    const std::string method = std::visit(Described{images, channels}, of_device);
    return bytes == 0 ? method : method + "; " + std::to_string(bytes);
  }
  std::string name() const {
    return std::to_string(images) + " x " + std::to_string(height) + " x " + std::to_string(width) + " x " +
           std::to_string(channels) + ", " + filter;
  }
};

const std::vector<Row>& rows() {
  // clang-format off
  // height, width, channels, images, element, filter, choice, on an H200, on an RTX 4090, on a small GPU
  static const std::vector<Row> rows = {
    {1, 1, 1, 1, kFloat, "young 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "on chip, 4 threads a line"},
    {1, 4096, 1, 1, kFloat, "young 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "tiled; 197120"},
    {1, 1000000, 1, 1, kFloat, "young 8", {}, "strips", "tiled; 48000512", "tiled; 48000512"},
    {4096, 1, 1, 1, kFloat, "young 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "tiled; 229376"},
    {1, 4096, 3, 1, kFloat, "young 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "tiled; 591360"},
    {4096, 1, 3, 1, kFloat, "young 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "tiled; 688128"},
    {64, 64, 1, 1, kFloat, "young 8", {}, "registers, few", "registers, few", "registers, few"},
    {256, 256, 1, 1, kFloat, "young 8", {}, "registers, few", "registers, few", "registers, few"},
    {512, 512, 1, 1, kFloat, "young 8", {}, "registers, few", "registers, few", "tiled; 50176"},
    {1000, 1000, 1, 1, kFloat, "young 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "tiled; 103424"},
    {1024, 1024, 1, 1, kFloat, "young 8", {}, "registers, few", "registers, few", "tiled; 103424"},
    {1080, 1920, 1, 1, kFloat, "young 8", {}, "on chip, 4 threads a line", "on chip, 2 threads a line", "tiled; 150016"},
    {1024, 2048, 1, 1, kFloat, "young 8", {}, "registers, few", "registers, few", "tiled; 152576"},
    {1600, 1600, 1, 1, kFloat, "young 8", {}, "on chip, 2 threads a line", "tiled; 163328", "tiled; 163328"},
    {1600, 1728, 1, 1, kFloat, "young 8", {}, "on chip, 2 threads a line", "tiled; 169472", "tiled; 169472"},
    {2048, 2048, 1, 1, kFloat, "young 8", {}, "registers, large", "tiled; 209920", "tiled; 209920"},
    {2112, 2048, 1, 1, kFloat, "young 8", {}, "on chip, 2 threads a line", "tiled; 213504", "tiled; 213504"},
    {2112, 2112, 1, 1, kFloat, "young 8", {}, "strips", "tiled; 216576", "tiled; 216576"},
    {2048, 4096, 1, 1, kFloat, "young 8", {}, "strips", "tiled; 308224", "tiled; 308224"},
    {4096, 8192, 1, 1, kFloat, "young 8", {}, "strips", "tiled; 619520", "tiled; 619520"},
    {6000, 6016, 1, 1, kFloat, "young 8", {}, "strips", "tiled; 622592", "tiled; 622592"},
    {8192, 16384, 1, 1, kFloat, "young 8", {}, "strips", "tiled; 1242112", "tiled; 1242112"},
    {256, 512, 1, 1, kFloat, "map 8", {}, "registers, few", "registers, few", "registers, few"},
    {512, 1024, 1, 1, kFloat, "map 8", {}, "registers, few", "registers, few", "tiled; 74752"},
    {1024, 2048, 1, 1, kFloat, "map 8", {}, "registers, few", "registers, few", "tiled; 152576"},
    {2048, 4096, 1, 1, kFloat, "map 8", {}, "strips", "tiled; 308224", "tiled; 308224"},
    {8192, 16384, 1, 1, kFloat, "map 8", {}, "strips", "tiled; 1242112", "tiled; 1242112"},
    {256, 512, 3, 1, kFloat, "map 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "tiled; 107520"},
    {512, 1024, 3, 1, kFloat, "map 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "tiled; 224256"},
    {1024, 2048, 3, 1, kFloat, "map 8", {}, "strips", "tiled; 457728", "tiled; 457728"},
    {2048, 4096, 3, 1, kFloat, "map 8", {}, "strips", "tiled; 924672", "tiled; 924672"},
    {4096, 8192, 3, 1, kFloat, "map 8", {}, "strips", "tiled; 1858560", "tiled; 1858560"},
    {8192, 16384, 3, 1, kFloat, "map 8", {}, "strips", "tiled; 3726336", "tiled; 3726336"},
    {500, 1000, 3, 1, kFloat, "map 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "tiled; 224256"},
    {1000, 2000, 3, 1, kFloat, "map 8", {}, "on chip, 2 threads a line, 2 channels at once", "tiled; 457728", "tiled; 457728"},
    {2000, 4000, 3, 1, kFloat, "map 8", {}, "tiled; 915456", "tiled; 915456", "tiled; 915456"},
    {64, 64, 3, 1, kFloat, "young 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "on chip, 4 threads a line"},
    {1024, 1024, 3, 1, kFloat, "young 8", {}, "on chip, 2 threads a line", "on chip, 2 threads a line, 2 channels at once", "tiled; 310272"},
    {1024, 1408, 3, 1, kFloat, "young 8", {}, "on chip, 2 threads a line", "tiled; 365568", "tiled; 365568"},
    {1152, 1280, 3, 1, kFloat, "young 8", {}, "strips", "tiled; 368640", "tiled; 368640"},
    {1080, 1920, 3, 1, kFloat, "young 8", {}, "strips", "tiled; 450048", "tiled; 450048"},
    {2048, 2048, 3, 1, kFloat, "young 8", {}, "strips", "tiled; 629760", "tiled; 629760"},
    {6000, 6016, 3, 1, kFloat, "young 8", {}, "strips", "tiled; 1867776", "tiled; 1867776"},
    {1024, 1024, 4, 1, kFloat, "young 8", {}, "on chip, 2 threads a line", "on chip, 2 threads a line, 2 channels at once", "tiled; 413696"},
    {1024, 1088, 4, 1, kFloat, "young 8", {}, "strips", "tiled; 425984", "tiled; 425984"},
    {2048, 2048, 4, 1, kFloat, "young 8", {}, "strips", "tiled; 839680", "tiled; 839680"},
    {2048, 2048, 2, 1, kFloat, "young 8", {}, "strips", "tiled; 419840", "tiled; 419840"},
    {512, 512, 1, 1, kHalf, "young 8", {}, "on chip, 4 threads a line", "on chip, 4 threads a line", "tiled; 50176"},
    {2048, 2048, 1, 1, kHalf, "young 8", {}, "on chip, 2 threads a line", "tiled; 209920", "tiled; 209920"},
    {4096, 8192, 1, 1, kHalf, "young 8", {}, "strips", "tiled; 619520", "tiled; 619520"},
    {1024, 1024, 3, 1, kHalf, "young 8", {}, "on chip, 2 threads a line", "on chip, 2 threads a line, 2 channels at once", "tiled; 310272"},
    {1024, 2048, 3, 1, kHalf, "young 8", {}, "strips", "tiled; 457728", "tiled; 457728"},
    {2048, 2048, 3, 1, kHalf, "young 8", {}, "strips", "tiled; 629760", "tiled; 629760"},
    {4096, 8192, 3, 1, kHalf, "young 8", {}, "strips", "tiled; 1858560", "tiled; 1858560"},
    {2048, 2048, 4, 1, kHalf, "young 8", {}, "strips", "tiled; 839680", "tiled; 839680"},
    {512, 512, 1, 1, kDouble, "young 8", {}, "lines", "lines", "lines"},
    {4096, 8192, 3, 1, kDouble, "young 8", {}, "lines", "lines", "lines"},
    {256, 256, 1, 16, kFloat, "young 8", {}, "registers, few, 16 at once", "registers, few, 16 at once", "registers, few, 3 at once"},
    {512, 512, 1, 100, kFloat, "young 8", {}, "registers, few, 8 at once", "registers, few, 8 at once", "tiled; 5017600"},
    {500, 500, 1, 4, kFloat, "young 8", {}, "on chip, 4 threads a line, 4 at once", "on chip, 4 threads a line, 4 at once", "tiled; 200704"},
    {500, 500, 1, 100, kFloat, "young 8", {}, "on chip, 2 threads a line, 16 at once", "on chip, 2 threads a line, 8 at once", "tiled; 5017600"},
    {256, 256, 3, 16, kFloat, "young 8", {}, "on chip, 2 threads a line, 16 at once", "on chip, 2 threads a line, 10 at once", "on chip, 4 threads a line, 2 channels at once, 1 at once"},
    {256, 256, 3, 100, kFloat, "young 8", {}, "on chip, 2 threads a line, 22 at once", "on chip, 2 threads a line, 10 at once", "on chip, 4 threads a line, 2 channels at once, 1 at once"},
    {1080, 1920, 3, 10, kFloat, "young 8", {}, "strips, 1 at once", "tiled; 4500480", "tiled; 4500480"},
    {2048, 2048, 1, 8, kFloat, "young 8", {}, "registers, large, 1 at once", "tiled; 1679360", "tiled; 1679360"},
    {1024, 1024, 1, 1, kFloat, "deriche 8", {}, "registers, few", "registers, few", "tiled; 135168"},
    {1984, 2112, 1, 1, kFloat, "deriche 8", {}, "strips", "tiled; 273920", "tiled; 273920"},
    {1980, 2100, 1, 1, kFloat, "deriche 8", {}, "strips", "tiled; 273920", "tiled; 273920"},
    {4096, 8192, 1, 1, kFloat, "deriche 8", {}, "strips", "tiled; 815104", "tiled; 815104"},
    {1024, 1024, 3, 1, kFloat, "deriche 8", {}, "on chip, 2 threads a line", "on chip, 2 threads a line, 2 channels at once", "tiled; 405504"},
    {1024, 1280, 3, 1, kFloat, "deriche 8", {}, "strips", "on chip, 2 threads a line, 1 channel at once", "tiled; 454656"},
    {2048, 2048, 3, 1, kFloat, "deriche 8", {}, "strips", "tiled; 823296", "tiled; 823296"},
    {2048, 2048, 1, 1, kFloat, "cubic", {}, "registers, large", "tiled; 80896", "tiled; 80896"},
    {2048, 2048, 3, 1, kFloat, "cubic", {}, "strips", "tiled; 242688", "tiled; 242688"},
    {2048, 2048, 3, 1, kFloat, "zero 8", {}, "strips", "tiled; 629760", "tiled; 629760"},
    {2048, 2048, 3, 1, kFloat, "reflect 8", {}, "strips", "tiled; 629760", "tiled; 629760"},
    {1024, 1024, 3, 1, kFloat, "mirror 8", {}, "on chip, 2 threads a line", "on chip, 2 threads a line, 2 channels at once", "tiled; 310272"},
    {1080, 1920, 4, 1, kFloat, "mirror 8", {}, "on chip, 2 threads a line, 2 channels at once", "tiled; 600064", "tiled; 600064"},
    {2048, 2048, 3, 1, kFloat, "mirror 8", {}, "tiled; 629760", "tiled; 629760", "tiled; 629760"},
    {4096, 8192, 3, 1, kFloat, "mirror 8", {}, "tiled; 1858560", "tiled; 1858560", "tiled; 1858560"},
    {6000, 6016, 1, 1, kFloat, "mirror 8", {}, "tiled; 622592", "tiled; 622592", "tiled; 622592"},
    {2048, 2048, 1, 1, kFloat, "five poles", {}, "registers, large", "tiled; 338944", "tiled; 338944"},
    {1024, 2048, 3, 1, kFloat, "five poles", {}, "on chip, 2 threads a line, 1 channel at once", "tiled; 746496", "tiled; 746496"},
    {4096, 8192, 3, 1, kHalf, "five poles", {}, "tiled; 3032064", "tiled; 3032064", "tiled; 3032064"},
    {2048, 2048, 3, 1, kFloat, "along x", {}, "strips", "tiled; 629760", "tiled; 629760"},
    {512, 512, 1, 1, kFloat, "young 32", {}, "on chip, 2 threads a line", "on chip, 2 threads a line", "tiled; 50176"},
    {1600, 1664, 1, 1, kFloat, "young 32", {}, "on chip, 2 threads a line", "tiled; 166400", "tiled; 166400"},
    {2048, 2048, 1, 1, kFloat, "young 32", {}, "tiled; 209920", "tiled; 209920", "tiled; 209920"},
    {512, 512, 3, 1, kFloat, "young 32", {}, "on chip, 2 threads a line", "on chip, 2 threads a line", "tiled; 150528"},
    {1600, 1664, 3, 1, kFloat, "young 32", {}, "tiled; 499200", "tiled; 499200", "tiled; 499200"},
    {2048, 2048, 3, 1, kFloat, "young 32", {}, "tiled; 629760", "tiled; 629760", "tiled; 629760"},
    {1024, 1024, 1, 1, kFloat, "young 400", {}, "on chip, 2 threads a line", "on chip, 2 threads a line", "tiled; 103424"},
    {2048, 2048, 1, 1, kFloat, "young 400", {}, "tiled; 209920", "tiled; 209920", "tiled; 209920"},
    {6000, 6016, 3, 1, kFloat, "young 400", {}, "tiled; 1867776", "tiled; 1867776", "tiled; 1867776"},
    {512, 512, 1, 1, kFloat, "one way, mirror", {}, "lines", "lines", "lines"},
    {1024, 2048, 3, 1, kHalf, "one way, mirror", {}, "lines; 25165824", "lines; 25165824", "lines; 25165824"},
    {512, 512, 1, 1, kFloat, "young 8", {Method::kAutomatic, 0}, "registers, few", "registers, few", "tiled; 50176"},
    {1024, 2048, 3, 1, kFloat, "young 8", {Method::kAutomatic, 0}, "tiled; 457728", "tiled; 457728", "tiled; 457728"},
    {4096, 8192, 1, 1, kFloat, "young 8", {Method::kAutomatic, 0}, "tiled; 619520", "tiled; 619520", "tiled; 619520"},
    {4096, 8192, 3, 1, kFloat, "young 8", {Method::kAutomatic, 0}, "tiled; 1858560", "tiled; 1858560", "tiled; 1858560"},
    {1024, 2048, 3, 1, kFloat, "young 8", Method::kLines, "lines", "lines", "lines"},
    {1024, 2048, 3, 1, kHalf, "young 8", Method::kLines, "lines; 25165824", "lines; 25165824", "lines; 25165824"},
    {1024, 2048, 1, 1, kFloat, "young 8", Method::kTiled, "tiled; 152576", "tiled; 152576", "tiled; 152576"},
    {4096, 8192, 1, 1, kFloat, "young 8", Method::kTiled, "tiled; 619520", "tiled; 619520", "tiled; 619520"},
    {4096, 8192, 3, 1, kFloat, "young 8", Method::kTiled, "tiled; 1858560", "tiled; 1858560", "tiled; 1858560"},
    {4096, 8190, 1, 1, kFloat, "young 8", Method::kTiled, "tiled; 619520", "tiled; 619520", "tiled; 619520"},
    {4096, 8192, 1, 1, kHalf, "young 8", Method::kTiled, "tiled; 619520", "tiled; 619520", "tiled; 619520"},
    {1024, 1024, 1, 1, kFloat, "young 8", Method::kOnChip, "registers, few", "registers, few", "refused: holds 40"},
    {2048, 2112, 3, 1, kFloat, "young 8", Method::kOnChip, "on chip, 2 threads a line, 1 channel at once", "refused: holds 512", "refused: holds 40"},
    {2112, 2112, 3, 1, kFloat, "young 8", Method::kOnChip, "refused: holds 1056", "refused: holds 512", "refused: holds 40"},
    {500, 500, 1, 100, kFloat, "young 8", Method::kOnChip, "on chip, 2 threads a line, 16 at once", "on chip, 2 threads a line, 8 at once", "refused: holds 40"},
    {4096, 2624, 1, 1, kFloat, "young 400", Method::kOnChip, "refused: truncation", "refused: truncation", "refused: truncation"},
    {1024, 2048, 3, 1, kFloat, "young 8", Method::kDecaying, "strips", "tiled; 457728", "tiled; 457728"},
    {512, 512, 1, 1, kFloat, "young 8", Method::kDecaying, "strips", "tiled; 50176", "tiled; 50176"},
    {2704, 2504, 1, 1, kFloat, "five poles", Method::kDecaying, "refused: strips", "refused: strips", "refused: strips"},
    {1024, 2048, 3, 1, kFloat, "mirror 8", Method::kDecaying, "refused: strips", "refused: strips", "refused: strips"},
    {1024, 2048, 3, 1, kFloat, "young 8", {Method::kDecaying, 0}, "refused: truncation", "refused: truncation", "refused: truncation"},
    {8192, 16384, 1, 1, kFloat, "young 400", Method::kDecaying, "refused: truncation", "refused: truncation", "refused: truncation"},
    {512, 512, 1, 1, kDouble, "young 8", Method::kTiled, "refused: tiles", "refused: tiles", "refused: tiles"},
  };
  // clang-format on
  return rows;
}

TEST(RecursiveFilterMethod, IsTheOneOfTheTable) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name());
    EXPECT_EQ(row.chosen(kH200), row.on_h200);
    EXPECT_EQ(row.chosen(kRtx4090), row.on_rtx4090);
    EXPECT_EQ(row.chosen(kSmallTuring), row.on_small);
  }
}

/// What an H200 holds by the kernels' launch bounds, and the rule that was measured for
/// images of one channel, written out once more.
struct GrayOnH200 {
  Row row;
  int order;
  bool single;
  const recursive_filter::Windows& windows;

  std::int64_t held(const std::string& kernel) const {
    constexpr std::int64_t kMultiprocessors = 132;
    const auto blocks = [&]() -> std::int64_t {
      if (kernel == "few") return 4;
      if (kernel == "large") return 2;
      if (kernel == "4 threads") return order <= 3 ? 4 : 2;
      if (!single) return 5;
      return order <= 3 ? 8 : 7;
    };
    return kMultiprocessors * blocks();
  }
  std::string in_registers() const {
    if (row.element != kFloat || !single || row.filter.starts_with("mirror") || row.filter == "along x")
      return "";
    const auto fits = [&](std::int64_t side, const std::string& form) {
      return row.height % side == 0 && row.width % side == 0 &&
             (row.height / side) * (row.width / side) <= held(form);
    };
    return fits(64, "few") ? "registers, few" : fits(128, "large") ? "registers, large" : "";
  }
  std::string method() const {
    const std::int64_t tiles = (row.height + 63) / 64 * ((row.width + 63) / 64);
    if (std::max(windows.y, windows.x) > 16) return "tiled";
    if (const std::string form = in_registers(); !form.empty()) return form;
    if (tiles > held("2 threads")) return single && windows.of_strips.has_value() ? "strips" : "tiled";
    return single && tiles <= held("4 threads") ? "on chip, 4 threads a line" : "on chip, 2 threads a line";
  }
};

TEST(RecursiveFilterMethod, OfGrayImagesIsTheOneThatWasMeasured) {
  int shapes = 0;
  for (const char* filter :
       {"young 8", "deriche 8", "cubic", "five poles", "mirror 8", "along x", "young 32"}) {
    for (const std::int64_t height : {1, 64, 200, 512, 1000, 1024, 1088, 1600, 1984, 2048, 2112, 4096}) {
      for (const std::int64_t width : {4, 64, 256, 1000, 1024, 1664, 2048, 2112, 6016, 8192}) {
        const auto element = shapes % 3 == 0 ? kHalf : kFloat;
        const Row row{height, width, 1, 1, element, filter, {}, "", "", ""};
        const auto planned = planned_filter(filter_of(filter), height, width, false, kNegligibleTruncation);
        ASSERT_TRUE(planned->windows().has_value());
        const GrayOnH200 rule{row, planned->axes().order, planned->single(), *planned->windows()};
        const std::string chosen = std::visit(Described{1, 1}, row.plan(kH200));
        EXPECT_EQ(chosen, rule.method()) << row.name();
        ++shapes;
      }
    }
  }
  EXPECT_GE(shapes, 60);
}

TEST(RecursiveFilterMethod, TakesScratchOnlyWhereItIsUsed) {
  for (const Row& row : rows()) {
    for (const DeviceNumbers& device : {kH200, kRtx4090, kSmallTuring}) {
      const Plan plan = row.plan(device);
      const bool uses = std::holds_alternative<TiledPlan>(plan) ||
                        (std::holds_alternative<LinesPlan>(plan) && row.element == kHalf);
      EXPECT_EQ(scratch_bytes_of(plan) > 0, uses) << row.name();
    }
  }
}

}  // namespace
}  // namespace cumulus
