#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "kernels/core/device_numbers.h"
#include "kernels/core/float16.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/recursive_filter/design.h"
#include "kernels/recursive_filter/fir/plan.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/planned_filter.h"
#include "kernels/recursive_filter/plans.h"

// The one place that chooses how a GPU filters: recursively (Plan) or by a blur of positive weights
// (FirPlan), which the request decides. Each choice follows from its arguments alone and is there for every
// job that the checks let pass. The CPU has one way, kLines.

namespace cumulus {

enum class RecursiveFilterMethod {
  kAutomatic,  // the fastest that can do it
  kLines,      // a thread for each column, then for each row
  kTiled,      // reads the image twice, writes it once; not for images of double, nor for filters whose
               // directions have different poles while a boundary is kReflect or kMirror
  kOnChip,     // reads and writes the image once: all tiles stay on the chip, where each needs the
               // neighbours within the decay length. Where kTiled can do it, the decay length is at most
               // kMaxWindow tiles, or the axis has at most kMaxWholeAxis, and a channel of an image fits
  kDecaying,   // the same for images of any size, in strips: where strips_serve, in single precision, and the
               // decay length is at most kMaxStripWindow tiles. On GPUs that have no strip_blocks, kTiled
               // stands in, which leaves nothing out
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

/// Whether any GPU can filter images of `height` x `width` pixels as chosen; not kTooManyTiles.
/// Throws std::invalid_argument where a pole is unstable.
MethodObstacle obstacle_to(const RecursiveFilter& filter, std::int64_t height, std::int64_t width,
                           bool of_doubles, const RecursiveFilterChoice& choice);

/// A channel of the image has more tiles than the device holds at once.
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

enum class FilterElement { kFloat, kFloat16, kDouble };

/// What of images decides how they are filtered.
struct ImagesShape {
  std::int64_t height = 1, width = 1, channels = 1;
  std::int64_t images = 1;
  std::int64_t row_stride = 1;  // in elements
  FilterElement element = FilterElement::kFloat;
  bool aligned = true;  // rows_are_aligned
};

template <class T, Space S>
ImagesShape images_shape(const FilterImages<const T, S>& images) {
  const ImageView<const T, S>& image = images.first;
  return {.height = image.height,
          .width = image.width,
          .channels = image.channels,
          .images = images.count,
          .row_stride = image.row_stride,
          .element = std::is_same_v<T, double>    ? FilterElement::kDouble
                     : std::is_same_v<T, Float16> ? FilterElement::kFloat16
                                                  : FilterElement::kFloat,
          .aligned = rows_are_aligned(images)};
}

/// How `device` filters images of `shape`, of the height and width that `filter` is planned for.
Plan choose(const PlannedFilter& filter, const ImagesShape& shape, RecursiveFilterMethod method,
            const DeviceNumbers& device);

/// The same for a blur of positive weights, which check_fir_blur lets pass; it fits every device.
FirPlan choose(const FirBlur& blur, const ImagesShape& shape, const DeviceNumbers& device);

/// Throws where the plan is to refuse, unless for kTooManyTiles, which is reported when the filter is
/// applied.
void require_possible(const Plan& plan, const RecursiveFilterChoice& choice);

}  // namespace cumulus::recursive_filter

namespace cumulus {

/// Scratch bytes of apply_recursive_filter for these images: exactly those of the chosen plan. Of pointers it
/// matters whether they are aligned (null is); `device` matters on a GPU only. Throws as that does, but for
/// DoesNotFitOnChip.
template <class T, Space S>
std::size_t apply_recursive_filter_scratch_bytes(const FilterImages<const T, S>& images,
                                                 const RecursiveFilter& filter, const DeviceNumbers& device,
                                                 const RecursiveFilterChoice& choice = {}) {
  using namespace recursive_filter;
  const ImageView<const T, S>& image = images.first;
  if constexpr (S == Space::kHost) {
    if (!std::is_same_v<T, Float16>) return 0;
    // An image as floats.
    return ScratchSize().add<float>(static_cast<std::size_t>(image.elements())).bytes();
  }
  const auto planned = planned_filter(filter, image.height, image.width, std::is_same_v<T, double>,
                                      choice.max_truncation_error);
  const Plan plan = choose(*planned, images_shape(images), choice.method, device);
  require_possible(plan, choice);
  return scratch_bytes_of(plan);
}

}  // namespace cumulus
