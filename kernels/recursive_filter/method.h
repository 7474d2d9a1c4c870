#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "kernels/core/float16.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/recursive_filter/design.h"
#include "kernels/recursive_filter/exact_strips/exact_strips.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/math/axis_plan.h"
#include "kernels/recursive_filter/math/tile_grid.h"
#include "kernels/recursive_filter/math/truncation.h"
#include "kernels/recursive_filter/strips/strips.h"
#include "kernels/recursive_filter/tuning.h"
#include "kernels/recursive_filter/windows/schedule.h"

namespace cumulus {

/// How a GPU filters; the CPU has one way, kLines.
enum class RecursiveFilterMethod {
  kAutomatic,  // the fastest that can do it
  kLines,      // a thread for each column, then for each row
  kTiled,      // reads the image twice, writes it once; not for images of double, nor for filters whose
               // directions have different poles while a boundary is kReflect or kMirror
  kOnChip,     // reads and writes the image once: all tiles stay on the chip, where each needs the
               // neighbours within the decay length. Where kTiled can do it, and the image fits
  kDecaying,   // the same for images of any size: in strips (strips/strips.h) where they serve,
               // otherwise in two passes. Where the decay length is at most kMaxWindow tiles, or the axis has
               // at most kMaxWholeAxis
};

/// Rounding of float32 images errs by more.
inline constexpr double kNegligibleTruncation = 0x1p-26;

struct RecursiveFilterChoice {
  RecursiveFilterMethod method = RecursiveFilterMethod::kAutomatic;
  /// What kOnChip and kDecaying, and kAutomatic by way of them, may leave out of a filtered pixel by
  /// truncated windows, relative to the image's largest magnitude. 0: nothing.
  double max_truncation_error = kNegligibleTruncation;

  constexpr RecursiveFilterChoice() = default;
  constexpr RecursiveFilterChoice(RecursiveFilterMethod of_method,  // NOLINT(google-explicit-constructor)
                                  double max_error = kNegligibleTruncation)
      : method(of_method), max_truncation_error(max_error) {}
  bool operator==(const RecursiveFilterChoice&) const = default;
};

/// Why a GPU cannot do as chosen.
enum class MethodObstacle {
  kNone,
  kTiles,       // images of double, or directions that differ where the image is folded back
  kTruncation,  // more would be left out than max_truncation_error
};

/// For images of `height` x `width` pixels. Throws std::invalid_argument where a pole is unstable.
MethodObstacle obstacle_to(const RecursiveFilter& filter, std::int64_t height, std::int64_t width,
                           bool of_doubles, const RecursiveFilterChoice& choice);

/// The image has more tiles than the device holds at once.
class DoesNotFitOnChip : public std::invalid_argument {
 public:
  DoesNotFitOnChip(std::int64_t tiles, std::int64_t tiles_on_chip);
  std::int64_t tiles() const { return tiles_; }
  std::int64_t tiles_on_chip() const { return tiles_on_chip_; }

 private:
  std::int64_t tiles_, tiles_on_chip_;
};

/// What was done.
struct RecursiveFilterRun {
  RecursiveFilterMethod method;
  /// As in RecursiveFilterChoice: a bound computed beforehand from the filter's poles.
  double truncation_bound = 0;
};

}  // namespace cumulus

namespace cumulus::recursive_filter {

/// True where the tiled method can do it: a boundary that folds the image back needs runs of both filters in
/// both directions, which the tiles hold only where these are the same.
bool tiles_serve(const RecursiveFilter& filter);

/// A plan's constants in the form that its kernels take: made, in long double, by the first call that runs
/// them, and kept with the plan.
class KernelConstants {
 public:
  /// Each plan has one T.
  template <class T, class Make>
  const T& get(const Make& make) {
    std::call_once(once_, [&] { kept_ = std::make_shared<const T>(make()); });
    return *static_cast<const T*>(kept_.get());
  }

 private:
  std::once_flag once_;
  std::shared_ptr<const void> kept_;
};

/// How a GPU filters images.
struct RecursiveFilterPlan {
  Precision precision;
  int order;
  AxisPlan y, x;
  MethodObstacle obstacle;
  RecursiveFilterMethod
      method;  // kLines, kTiled; kOnChip: that or kDecaying's two passes; kDecaying: in strips
  std::optional<Windows> windows;
  bool direct_form = false;  // in strips, three poles
  std::shared_ptr<KernelConstants> constants = std::make_shared<KernelConstants>();
  std::shared_ptr<KernelConstants> register_tile_constants = std::make_shared<KernelConstants>();
  /// kTiled: of images that tma_serves; null: none.
  std::shared_ptr<const RecursiveFilterPlan> exact_strips;
};

/// Plans take longer to make than small images to filter: those of the last few calls are kept. Throws
/// std::invalid_argument where a pole is unstable.
std::shared_ptr<const RecursiveFilterPlan> plan_on_gpu(const RecursiveFilter& filter, std::int64_t height,
                                                       std::int64_t width, bool of_doubles,
                                                       const RecursiveFilterChoice& choice);
/// The same, and throws where there is an obstacle.
std::shared_ptr<const RecursiveFilterPlan> require_plan_on_gpu(const RecursiveFilter& filter,
                                                               std::int64_t height, std::int64_t width,
                                                               bool of_doubles,
                                                               const RecursiveFilterChoice& choice);

}  // namespace cumulus::recursive_filter

namespace cumulus {

/// Scratch bytes of apply_recursive_filter for these images: exact, a function of their extents, the filter
/// and the choice only (pointers may be null). Throws as that does.
template <class T, Space S>
std::size_t apply_recursive_filter_scratch_bytes(const FilterImages<const T, S>& images,
                                                 const RecursiveFilter& filter,
                                                 const RecursiveFilterChoice& choice = {}) {
  using Method = RecursiveFilterMethod;
  constexpr bool kHalf = std::is_same_v<T, Float16>;
  const ImageView<const T, S>& image = images.first;
  if constexpr (S == Space::kHost) {
    // An image as floats.
    return kHalf ? ScratchSize().add<float>(static_cast<std::size_t>(image.elements())).bytes() : 0;
  }
  const auto count = static_cast<std::size_t>(images.count);
  const auto kept_plan = recursive_filter::require_plan_on_gpu(filter, image.height, image.width,
                                                               std::is_same_v<T, double>, choice);
  const recursive_filter::RecursiveFilterPlan& plan = *kept_plan;
  if (plan.method == Method::kLines) {
    return kHalf ? ScratchSize().add<float>(count * static_cast<std::size_t>(image.elements())).bytes() : 0;
  }
  const recursive_filter::FilterTiles tiles(image.height, image.width, image.channels);
  if (plan.method == Method::kTiled) {
    if (plan.exact_strips != nullptr && recursive_filter::tma_serves(images)) return 0;
    return ScratchSize()
        .add<float>(count * tiles.border_carries(plan.order))
        .add<float>(count * tiles.border_pixels())
        .add<float>(count * tiles.border_pixels())
        .bytes();
  }
  if (plan.method == Method::kDecaying) return 0;
  std::size_t state_floats = 0;
  recursive_filter::with_order(plan.order, [&]<int Order>() {
    state_floats = recursive_filter::window_schedule<Order, T>(image.height, image.width, image.channels,
                                                               images.count, plan.y, *plan.windows)
                       .template scratch_floats<Order>(tiles.columns, tiles.channels);
  });
  return ScratchSize().add<float>(state_floats).bytes();
}

}  // namespace cumulus
