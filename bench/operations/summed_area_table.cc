#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/baselines/direct_box.h"
#include "bench/baselines/summed_area_table_overlapped.h"
#include "bench/harness/bench.h"
#include "kernels/core/non_finite.h"
#include "kernels/summed_area_table/queries.h"
#include "tests/cases/summed_area_table_boxes.h"

namespace cumulus::bench {
namespace {

using testing::ImagePattern;
using testing::ImageShape;
using testing::make_image;
using testing::TestImage;

template <class T>
constexpr const char* kTypeName = nullptr;
template <>
constexpr const char* kTypeName<Float16> = "f16";
template <>
constexpr const char* kTypeName<std::uint16_t> = "u16";
template <>
constexpr const char* kTypeName<std::int32_t> = "i32";
template <>
constexpr const char* kTypeName<std::int64_t> = "i64";
template <>
constexpr const char* kTypeName<std::uint8_t> = "u8";
template <>
constexpr const char* kTypeName<std::uint32_t> = "u32";
template <>
constexpr const char* kTypeName<std::uint64_t> = "u64";
template <>
constexpr const char* kTypeName<float> = "f32";
template <>
constexpr const char* kTypeName<double> = "f64";

std::string size_name(ImageShape shape, std::int64_t channels) {
  const std::string extents = std::to_string(shape.height) + "x" + std::to_string(shape.width);
  return channels == 1 ? extents : extents + "x" + std::to_string(channels);
}

enum class Form { kPlain, kExclusive, kWithSquares };

template <class Input, class Sum, class Executor>
void bench_table(Runner<Executor>& runner, ImageShape shape, std::int64_t channels,
                 Form form = Form::kPlain) {
  const char* suffix = form == Form::kExclusive ? "-exclusive" : form == Form::kWithSquares ? "-squares" : "";
  const std::string name = std::string("summed_area_table/") + kTypeName<Input> + "-" + kTypeName<Sum> +
                           suffix + "/" + size_name(shape, channels);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const auto image = make_image<Input>(shape, channels, 0, ImagePattern::kRandom);
  const bool exclusive = form == Form::kExclusive;
  const std::int64_t border = exclusive ? 1 : 0;
  const auto elements = static_cast<std::size_t>((shape.height + border) * (shape.width + border) * channels);
  const bool squares = form == Form::kWithSquares;
  const Array<Input, Executor> pixels(executor, image.elements);
  const Array<Sum, Executor> table(executor, elements);
  const Array<Sum, Executor> table_of_squares(executor, squares ? elements : 1);
  TableJob<Input, Sum, Executor::kSpace> job;
  job.image = {pixels.data(), shape.height, shape.width, channels};
  job.sums = {table.data(), shape.height + border, shape.width + border, channels};
  job.exclusive = exclusive;
  if (squares) job.squares = table_of_squares.data();
  runner.measure({
      .name = name,
      .bytes =
          testing::summed_area_table_bytes<Input, Sum>(static_cast<std::int64_t>(image.elements.size())) +
          (squares ? elements * sizeof(Sum) : 0),
      .items = static_cast<double>(shape.height * shape.width),
      .unit = "pixels",
      .scratch_bytes = build_summed_area_table_scratch_bytes(job, executor.numbers()),
      .run = [&] { build_summed_area_table(executor, job); },
      .verify =
          [&] {
            const std::string wrong = verify_summed_area_table(image, table.to_host().data(), exclusive);
            if (!wrong.empty() || !squares) return wrong;
            return verify_summed_area_table(squares_of(image), table_of_squares.to_host().data());
          },
      .verified_by = "serial oracle, every element",
  });
}

#if CUMULUS_WITH_CUDA
/// The table that ours is to leave behind.
void bench_overlapped_table(Runner<CudaExecutor>& runner, ImageShape shape) {
  const std::string name = "overlapped_table/f32-f32/" + size_name(shape, 1);
  if (!runner.wants(name)) return;
  CudaExecutor& executor = runner.executor();
  const auto image = make_image<float>(shape, 1, 0, ImagePattern::kRandom);
  const Array<float, CudaExecutor> pixels(executor, image.elements);
  const Array<float, CudaExecutor> table(executor, image.elements.size());
  runner.measure({
      .name = name,
      .bytes =
          testing::summed_area_table_bytes<float, float>(static_cast<std::int64_t>(image.elements.size())),
      .items = static_cast<double>(shape.height * shape.width),
      .unit = "pixels",
      .scratch_bytes = overlapped_scratch_bytes(shape.height, shape.width),
      .run =
          [&] { build_overlapped_table(executor, pixels.data(), shape.height, shape.width, table.data()); },
      .verify = [&] { return verify_summed_area_table(image, table.to_host().data()); },
      .verified_by = "serial oracle, every element",
  });
}
#endif

/// Random rectangles of up to 128 pixels a side: sums from a resident table.
template <class Executor>
void bench_rectangles(Runner<Executor>& runner, ImageShape shape, std::size_t count) {
  const std::string name = "sum_rectangles/f64/" + std::to_string(count) + "/" + size_name(shape, 1);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const auto image = make_image<float>(shape, 1, 0, ImagePattern::kIntegers);
  const Array<float, Executor> pixels(executor, image.elements);
  const Array<double, Executor> table(executor, image.elements.size());
  TableJob<float, double, Executor::kSpace> job;
  job.image = {pixels.data(), shape.height, shape.width};
  job.sums = {table.data(), shape.height, shape.width};
  executor.reserve_scratch(build_summed_area_table_scratch_bytes(job, executor.numbers()));
  build_summed_area_table(executor, job);
  executor.synchronize();
  std::vector<Rectangle> list(count);
  std::mt19937 random(3);
  for (Rectangle& r : list) {
    r.top = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(shape.height));
    r.left = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(shape.width));
    r.bottom = r.top + 1 + static_cast<std::int32_t>(random() % 128);
    r.right = r.left + 1 + static_cast<std::int32_t>(random() % 128);
  }
  const Array<Rectangle, Executor> rectangles(executor, list);
  const Array<double, Executor> sums(executor, count);
  const TableView<double, Executor::kSpace> view{{shape.height, shape.width, 1, false}, table.data()};
  runner.measure({
      .name = name,
      .bytes = count * (sizeof(Rectangle) + 5 * sizeof(double)),
      .items = static_cast<double>(count),
      .unit = "rectangles",
      .scratch_bytes = 0,
      .run =
          [&] {
            const Span<const Rectangle, Executor::kSpace> asked = rectangles.span();
            sum_rectangles(executor, view, asked, {sums.data()}, nullptr);
          },
      .verify = [&]() -> std::string {
        const std::vector<double> got = sums.to_host();
        for (std::size_t i = 0; i < count; i += 97) {
          const auto& r = list[i];
          const auto right = testing::naive_rectangle(image, {r.top, r.left, r.bottom, r.right}, 0);
          if (static_cast<long double>(got[i]) != right.sum) return "rectangle " + std::to_string(i);
        }
        return "";
      },
      .verified_by = "naive sums, every 97th rectangle",
  });
}

/// Boxes of a map of radii take a table; others too, where an image is small for its radius.
struct BoxVariant {
  std::int64_t radius;
  bool mapped = false;
  Boundary boundary = Boundary::kExact;
  bool looks = false;  // for NaN and infinity first, as the service does

  std::string boundary_name() const {
    return boundary == Boundary::kMirror ? "mirror" : boundary == Boundary::kClamp ? "clamp" : "exact";
  }
  std::string name() const {
    return std::string(looks ? "refuse-" : "") + (boundary == Boundary::kExact ? "" : boundary_name() + "-") +
           (mapped ? "map-to-" : "radius-") + std::to_string(radius);
  }
};

template <class Input, class Executor>
void bench_box_filter(Runner<Executor>& runner, ImageShape shape, std::int64_t channels,
                      const BoxVariant& variant) {
  const auto [radius, mapped, boundary, looks] = variant;
  const std::string name =
      std::string("filter_box/") + kTypeName<Input> + "/" + variant.name() + "/" + size_name(shape, channels);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const auto image = make_image<Input>(shape, channels, 0, ImagePattern::kRandom);
  const auto elements = static_cast<std::int64_t>(image.elements.size());
  std::vector<float> radii(mapped ? image.elements.size() / static_cast<std::size_t>(channels) : 1);
  for (std::size_t i = 0; i < radii.size(); ++i) {  // steps of one pixel along a row, as a depth of field's
    const std::int64_t whole = static_cast<std::int64_t>(i) % shape.width * radius / shape.width;
    radii[i] = static_cast<float>(whole);
  }
  const Array<Input, Executor> pixels(executor, image.elements);
  const Array<float, Executor> map(executor, radii);
  const Array<float, Executor> means(executor, image.elements.size());
  BoxFilterJob<Input, Executor::kSpace> job;
  job.image = {pixels.data(), shape.height, shape.width, channels};
  job.means = {means.data(), shape.height, shape.width, channels};
  if (mapped) job.radii = map.data();
  const ReportMemory<NonFinite, Executor> non_finite;
  job.box = {radius, radius, boundary, boundary};
  // A naive box of a large radius takes long: of every image as many of its pixels as are done in time.
  const std::int64_t step = std::max({std::int64_t{1}, radius * radius / 16,
                                      elements * radius * radius / (std::int64_t{1} << 26)}) *
                                2 +
                            1;
  runner.measure({
      .name = name,
      .bytes = image.elements.size() * (sizeof(Input) + sizeof(float)) +
               (mapped ? radii.size() * sizeof(float) : 0),
      .items = static_cast<double>(shape.height * shape.width),
      .unit = "pixels",
      .scratch_bytes = filter_box_scratch_bytes(job, executor.numbers()),
      .run =
          [&] {
            if constexpr (!std::is_integral_v<Input>) {
              if (variant.looks) find_non_finite<Input>(executor, pixels.span(), *non_finite.get());
            }
            filter_box(executor, job);
          },
      .verify =
          [&] {
            const auto box_at = [&](std::int64_t y, std::int64_t x) {
              const auto side =
                  variant.mapped
                      ? static_cast<std::int64_t>(radii[static_cast<std::size_t>(y * shape.width + x)])
                      : variant.radius;
              return testing::NaiveBox{side, side, variant.boundary_name(), variant.boundary_name()};
            };
            return verify_box_filter(image, box_at, means.to_host().data(), nullptr, step);
          },
      .verified_by = "naive box, every " + std::to_string(step) + "th element",
  });
}

/// What the box filter is to be compared with: every pixel's box summed directly, along the rows and then
/// along the columns, 2 * (2 * radius + 1) additions.
template <class Executor>
void bench_direct_box(Runner<Executor>& runner, ImageShape shape, std::int64_t radius) {
  const std::string name = "direct_box/f32/radius-" + std::to_string(radius) + "/" + size_name(shape, 1);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const auto image = make_image<float>(shape, 1, 0, ImagePattern::kRandom);
  const Array<float, Executor> pixels(executor, image.elements);
  const Array<float, Executor> row_sums(executor, image.elements.size());
  const Array<float, Executor> means(executor, image.elements.size());
  const std::int64_t step = std::max<std::int64_t>(1, radius * radius / 16) * 2 + 1;
  runner.measure({
      .name = name,
      .bytes = image.elements.size() * 2 * sizeof(float),
      .items = static_cast<double>(shape.height * shape.width),
      .unit = "pixels",
      .scratch_bytes = 0,
      .run =
          [&] {
            filter_box_directly(executor, {pixels.data(), shape.height, shape.width}, radius, row_sums.data(),
                                means.data());
          },
      // Sums in float: within a part in 10^4 of the mean.
      .verify = [&]() -> std::string {
        const std::vector<float> got = means.to_host();
        for (std::size_t i = 0; i < got.size(); i += static_cast<std::size_t>(step)) {
          const auto at = static_cast<std::int64_t>(i);
          const auto right = naive_box(image, {radius, radius}, at / shape.width, at % shape.width, 0);
          const auto mean = static_cast<double>(right.sum) / static_cast<double>(right.pixels);
          if (!(std::abs(got[i] - mean) <= 1e-4 * mean)) return "pixel " + std::to_string(i);
        }
        return "";
      },
      .verified_by = "naive box, every " + std::to_string(step) + "th element, to 1e-4",
  });
}

/// Pictures and maps as users have them.
template <class Executor>
void bench_pictures(Runner<Executor>& runner) {
  for (const ImageShape shape : {ImageShape{1080, 1920}, ImageShape{1024, 2048}, ImageShape{2160, 3840},
                                 ImageShape{2048, 4096}, ImageShape{4096, 8192}}) {
    for (const std::int64_t channels : {1, 3, 4}) {
      for (const std::int64_t radius : {4, 8, 32}) {
        for (const Boundary boundary : {Boundary::kExact, Boundary::kClamp}) {
          bench_box_filter<float>(runner, shape, channels, {radius, false, boundary});
          bench_box_filter<Float16>(runner, shape, channels, {radius, false, boundary});
          bench_box_filter<std::uint8_t>(runner, shape, channels, {radius, false, boundary});
        }
        bench_box_filter<float>(runner, shape, channels, {radius, false, Boundary::kClamp, true});
        bench_box_filter<Float16>(runner, shape, channels, {radius, false, Boundary::kClamp, true});
      }
      for (const Boundary boundary : {Boundary::kExact, Boundary::kClamp, Boundary::kMirror})
        bench_box_filter<float>(runner, shape, channels, {64, true, boundary});
      bench_table<float, double>(runner, shape, channels);
      for (const Form form : {Form::kExclusive, Form::kWithSquares})
        bench_table<float, double>(runner, shape, channels, form);
      bench_table<Float16, float>(runner, shape, channels);
      bench_table<std::uint8_t, std::uint32_t>(runner, shape, channels);
      bench_table<std::uint16_t, std::uint64_t>(runner, shape, channels);
    }
  }
}

template <class Executor>
void bench_all(Runner<Executor>& runner) {
  constexpr bool kGpu = std::is_same_v<Executor, CudaExecutor>;
  std::vector<std::int64_t> sides = {1024, 2048, 4096, 8192};
  if (kGpu) sides.push_back(16384);
  if (runner.quick()) sides = {512};
  for (const std::int64_t side : sides) {
    const ImageShape shape{side, side};
    bench_table<float, float>(runner, shape, 1);
    bench_table<float, double>(runner, shape, 1);
    bench_table<std::uint8_t, std::uint32_t>(runner, shape, 1);
    bench_table<std::uint8_t, std::uint64_t>(runner, shape, 1);
    bench_table<float, float>(runner, shape, 1, Form::kExclusive);
    bench_table<float, double>(runner, shape, 1, Form::kExclusive);
    bench_table<std::uint8_t, std::uint32_t>(runner, shape, 1, Form::kExclusive);
#if CUMULUS_WITH_CUDA
    if constexpr (kGpu) bench_overlapped_table(runner, shape);
#endif
  }
  if (kGpu && !runner.quick()) {
    for (const ImageShape shape : {ImageShape{2160, 3840}, ImageShape{3000, 2000}}) {
      bench_table<float, float>(runner, shape, 1);
      bench_table<std::uint8_t, std::uint32_t>(runner, shape, 1);
    }
  }
  const std::int64_t side = sides[(sides.size() - 1) / 2];
  for (const std::int64_t channels : {2, 3, 4}) {
    bench_table<float, float>(runner, {side, side}, channels);
    bench_table<float, double>(runner, {side, side}, channels);
    bench_table<std::uint8_t, std::uint32_t>(runner, {side, side}, channels);
  }
  bench_table<float, float>(runner, {side - 1, side - 3}, 1);
  bench_table<float, double>(runner, {side - 1, side - 3}, 1);
  bench_table<float, double>(runner, {side, side}, 1, Form::kWithSquares);
  bench_table<std::uint8_t, std::uint64_t>(runner, {side, side}, 1, Form::kWithSquares);
  bench_table<std::uint16_t, std::uint64_t>(runner, {side, side}, 1);
  bench_table<std::uint16_t, std::uint64_t>(runner, {side, side}, 3);
  bench_table<std::int32_t, std::int64_t>(runner, {side, side}, 1);
  bench_table<Float16, float>(runner, {side, side}, 1);
  bench_table<double, double>(runner, {side, side}, 1);
  bench_rectangles(runner, {side, side}, runner.quick() ? 10'000 : 10'000'000);
  for (const std::int64_t radius : {3, 31}) {
    bench_box_filter<float>(runner, {sides.front(), sides.front()}, 1, {radius});
    bench_box_filter<std::uint8_t>(runner, {sides.front(), sides.front()}, 1, {radius});
  }
  const ImageShape filtered = runner.quick() ? ImageShape{256, 256} : ImageShape{2048, 2048};
  for (const std::int64_t radius : {4, 16, 64, 256, 512}) {
    if (runner.quick() && radius > 64) break;
    bench_box_filter<float>(runner, filtered, 1, {radius});
    bench_direct_box(runner, filtered, radius);
  }
  bench_box_filter<float>(runner, filtered, 1, {64, true});
  // By a table: too small an image for boxes that slide.
  for (const bool mapped : {false, true})
    bench_box_filter<float>(runner, filtered, 1, {64, mapped, Boundary::kMirror});
  if (!runner.quick()) bench_pictures(runner);
}

}  // namespace

void bench_summed_area_table(Runner<CpuExecutor>& runner);
void bench_summed_area_table(Runner<CudaExecutor>& runner);

void bench_summed_area_table(Runner<CpuExecutor>& runner) { bench_all(runner); }
void bench_summed_area_table(Runner<CudaExecutor>& runner) { bench_all(runner); }

}  // namespace cumulus::bench
