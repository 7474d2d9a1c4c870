#include "kernels/recursive_filter/method.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/recursive_filter/math/tile_grid.h"
#include "kernels/recursive_filter/math/weighted_sums.h"
#include "kernels/recursive_filter/on_chip/capacity.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus::recursive_filter {
namespace {

using Method = RecursiveFilterMethod;

/// Threads of register tiles count pixels from row to row, two at a time, in 32 bits.
constexpr std::int64_t kLongestRegisterStride = std::int64_t{1} << 30;

MethodObstacle obstacle_to(const PlannedFilter& filter, Method method) {
  if (method == Method::kAutomatic || method == Method::kLines) return MethodObstacle::kNone;
  if (!filter.goes_by_tiles()) return MethodObstacle::kTiles;
  if (method == Method::kTiled) return MethodObstacle::kNone;
  if (!filter.windows().has_value()) return MethodObstacle::kTruncation;
  if (method == Method::kOnChip) return MethodObstacle::kNone;
  if (!filter.single() || !strips_serve(filter.axes().y, filter.axes().x)) return MethodObstacle::kStrips;
  return filter.windows()->of_strips.has_value() ? MethodObstacle::kNone : MethodObstacle::kTruncation;
}

/// The plans of one job, and where they can be had.
class Chooser {
 public:
  Chooser(const PlannedFilter& filter, const ImagesShape& shape, const DeviceNumbers& device)
      : filter_(filter),
        axes_(filter.axes()),
        shape_(shape),
        device_(device),
        tiles_(shape.height, shape.width, shape.channels),
        strip_blocks_(filter.single() ? strip_blocks(device) : 0) {}

  Plan lines() const {
    // An image as floats.
    const std::int64_t floats = shape_.images * shape_.height * shape_.width * shape_.channels;
    const bool is_half = shape_.element == FilterElement::kFloat16;
    return LinesPlan{is_half ? ScratchSize().add<float>(static_cast<std::size_t>(floats)).bytes() : 0};
  }

  Plan tiled() const {
    const auto count = static_cast<std::size_t>(shape_.images);
    return TiledPlan{ScratchSize()
                         .add<float>(count * tiles_.border_carries(axes_.order))
                         .add<float>(count * tiles_.border_pixels())
                         .add<float>(count * tiles_.border_pixels())
                         .bytes()};
  }

  Plan decaying() const { return strips_can() ? strips() : tiled(); }

  Plan on_chip() const {
    const auto in_registers = register_tiles();
    if (in_registers.has_value()) return *in_registers;
    const std::int64_t resident = tiles_on_chip(kOnChipParts);
    if (resident < channel_tiles())
      return RefusalPlan{MethodObstacle::kTooManyTiles, channel_tiles(), resident};
    // Several images, or some of the channels of one.
    const std::int64_t images = std::clamp(resident / tiles_.count(), std::int64_t{1}, shape_.images);
    const std::int64_t channels = std::min(resident / channel_tiles(), shape_.channels);
    const std::int64_t last_images = (shape_.images - 1) % images + 1;
    const std::int64_t last_channels = (shape_.channels - 1) % channels + 1;
    return OnChipPlan{images, channels, parts_for(images * channels), parts_for(last_images * last_channels)};
  }

  /// The fastest when measured.
  Plan fastest() const {
    if (!filter_.goes_by_tiles()) return lines();
    const std::int64_t channels_at_once = tiles_on_chip(kOnChipParts) / channel_tiles();
    const bool image_fits = register_tiles().has_value() || channels_at_once >= shape_.channels;
    const int launches = on_chip_launches(axes_.order, filter_.single());
    const bool fits_in_parts = channels_at_once * launches >= shape_.channels;
    // Windows take long to plan.
    if (!image_fits && !fits_in_parts && strip_blocks_ == 0) return tiled();
    if (!filter_.windows().has_value()) return tiled();
    if (image_fits && !windows_are_wide()) return on_chip();
    if (strips_can()) return strips();
    return fits_in_parts && !windows_are_wide() ? on_chip() : tiled();
  }

 private:
  std::int64_t channel_tiles() const { return tiles_.rows * tiles_.columns; }
  /// Tiles are faster then.
  bool windows_are_wide() const { return std::max(filter_.windows()->y, filter_.windows()->x) > kMaxWindow; }

  bool strips_can() const { return strip_blocks_ > 0 && filter_.windows()->of_strips.has_value(); }
  Plan strips() const {
    const StripGrid grid(shape_.height, shape_.width, shape_.channels, *filter_.windows()->of_strips);
    const bool repeats = axes_.x.boundary == FilterBoundary::kRepeat;
    return StripsPlan{StripDivision(grid, shape_.images, repeats, strip_blocks_)};
  }

  std::int64_t tiles_on_chip(int parts) const {
    return resident_tiles(on_chip_kernel(axes_.order, axes_.precision, parts), device_);
  }
  /// For a launch over `channels` channels, of all images: with more threads a tile where there are few
  /// tiles.
  int parts_for(std::int64_t channels) const {
    const bool few = filter_.single() && channels * channel_tiles() <= tiles_on_chip(kManyOnChipParts);
    return few ? kManyOnChipParts : kOnChipParts;
  }

  bool register_tiles_serve() const {
    const auto serves = [](const AxisPlan& axis) {
      return !axis.identity && !has_zero_gain(axis) && axis.pixels_left_out() == 0 && run_alike(axis);
    };
    return shape_.element == FilterElement::kFloat && filter_.single() && shape_.aligned &&
           shape_.row_stride <= kLongestRegisterStride && serves(axes_.y) && serves(axes_.x);
  }
  /// None where images are not whole tiles of one channel, or one of them does not fit.
  std::optional<RegisterTilesPlan> register_tiles() const {
    if (!register_tiles_serve()) return std::nullopt;
    for (const RegisterTiles form : {RegisterTiles::kFew, RegisterTiles::kLarge}) {
      const int side = register_tile_side(form);
      if (shape_.height % side != 0 || shape_.width % side != 0) continue;
      const std::int64_t resident = resident_tiles(register_tile_kernel(form, axes_.order), device_);
      const std::int64_t at_once = resident / ((shape_.height / side) * (shape_.width / side));
      if (at_once > 0) return RegisterTilesPlan{form, at_once};
    }
    return std::nullopt;
  }

  const PlannedFilter& filter_;
  const FilterAxes& axes_;
  const ImagesShape& shape_;
  const DeviceNumbers& device_;
  const FilterTiles tiles_;
  const int strip_blocks_;
};

}  // namespace

Plan choose(const PlannedFilter& filter, const ImagesShape& shape, Method method,
            const DeviceNumbers& device) {
  const MethodObstacle obstacle = obstacle_to(filter, method);
  if (obstacle != MethodObstacle::kNone) return RefusalPlan{obstacle};
  const Chooser chooser(filter, shape, device);
  switch (method) {
    case Method::kLines:
      return chooser.lines();
    case Method::kTiled:
      return chooser.tiled();
    case Method::kOnChip:
      return chooser.on_chip();
    case Method::kDecaying:
      return chooser.decaying();
    case Method::kAutomatic:
      break;
  }
  return chooser.fastest();
}

namespace {

/// The kernels of a blur's stages.
class FirChooser {
 public:
  FirChooser(const FirBlur& blur, const ImagesShape& shape, const DeviceNumbers& device)
      : shape_(shape),
        device_(device),
        extents_{shape.height, shape.width},
        stages_(device_stages(blur, extents_, of_doubles())) {}

  FirPlan plan() {
    FirPlan plan;
    if (!has_large_steps(stages_, extents_)) plan.kernels = small_steps();
    if (plan.kernels.empty()) {
      stages_ = axis_by_axis(stages_);
      plan.kernels.assign(stages_.size(), LargeStepPlan{});
    }
    plan.stages = stages_;
    plan.scratch = fir_scratch(stages_, extents_, shape_.channels, kFirDeviceRow);
    plan.scratch.even *= shape_.images;
    plan.scratch.odd *= shape_.images;
    plan.scratch_bytes = of_doubles() ? bytes_of<double>(plan.scratch) : bytes_of<float>(plan.scratch);
    return plan;
  }

 private:
  bool of_doubles() const { return shape_.element == FilterElement::kDouble; }
  template <class Real>
  static std::size_t bytes_of(const FirScratch& scratch) {
    ScratchSize size;
    size.add<Real>(static_cast<std::size_t>(scratch.even));
    size.add<Real>(static_cast<std::size_t>(scratch.odd));
    return size.bytes();
  }

  /// Between the stages are floats, or doubles.
  bool reads_halves(std::size_t stage) const {
    return shape_.element == FilterElement::kFloat16 && stage == 0;
  }
  bool writes_halves(std::size_t stage) const {
    return shape_.element == FilterElement::kFloat16 && stage + 1 == stages_.size();
  }

  /// None where a block of the device has not the memory for what a stage reaches: doubles of several
  /// channels may need more than 64 KB.
  std::vector<FirStagePlan> small_steps() const {
    std::vector<FirStagePlan> kernels;
    FirExtents before = extents_;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      kernels.push_back(small_step(i, before));
      const auto fits = [&](const FirTile& tile) { return tile.shared_bytes <= device_.block_shared_bytes; };
      const auto* ring = std::get_if<RingPlan>(&kernels.back());
      if (ring != nullptr && !fits(ring->tile)) return {};
      before = extents_after(stages_[i], before);
    }
    return kernels;
  }

  FirStagePlan small_step(std::size_t i, const FirExtents& before) const {
    const FirStage& stage = stages_[i];
    const int channels = static_cast<int>(shape_.channels);
    if (!of_doubles() && is_direct(stage) && reads_halves(i) == writes_halves(i)) {
      const std::size_t element_bytes = reads_halves(i) ? sizeof(Float16) : sizeof(float);
      const auto tile = choose_direct_tile(stage, extents_after(stage, before), channels, shape_.images,
                                           element_bytes, device_);
      if (tile.has_value()) return DirectPlan{*tile};
    }
    if (!of_doubles() && !goes_in_rings() && has_short_rows(before)) {
      if (is_sampling(stage)) {
        const auto tile = choose_sampling_tile(stage, before, channels, shape_.images, device_);
        if (tile.has_value()) return SamplingPlan{*tile};
      } else if (is_interpolation(stage)) {
        const auto tile = choose_interpolation_tile(stage, before, channels, shape_.images, device_);
        if (tile.has_value()) return InterpolationPlan{*tile};
      } else if (stage.y.has_value() != stage.x.has_value()) {
        return OneAxisPlan{};
      }
    }
    return RingPlan{choose_tile(form_of(stage.y, before.height), form_of(stage.x, before.width), channels,
                                shape_.images, of_doubles() ? sizeof(double) : sizeof(float), device_)};
  }

  /// Whether device_stages left the filter between the others along both axes.
  bool goes_in_rings() const {
    const FirStage& between = stages_[stages_.size() / 2];
    return stages_.size() > 1 && between.y.has_value() && between.x.has_value();
  }

  /// Whether a row of a stage's input has fewer than 2^32 bytes.
  bool has_short_rows(const FirExtents& before) const {
    constexpr std::int64_t kMaxRowNumbers = (std::int64_t{1} << 30) - 1;
    return std::max(before.width * shape_.channels, shape_.row_stride) <= kMaxRowNumbers;
  }

  const ImagesShape& shape_;
  const DeviceNumbers& device_;
  FirExtents extents_;
  std::vector<FirStage> stages_;
};

}  // namespace

FirPlan choose(const FirBlur& blur, const ImagesShape& shape, const DeviceNumbers& device) {
  return FirChooser(blur, shape, device).plan();
}

void require_possible(const Plan& plan, const RecursiveFilterChoice& choice) {
  const auto* refusal = std::get_if<RefusalPlan>(&plan);
  if (refusal == nullptr) return;
  const auto refuse = [](const std::string& why) { throw std::invalid_argument("recursive_filter: " + why); };
  switch (refusal->obstacle) {
    case MethodObstacle::kNone:
    case MethodObstacle::kTooManyTiles:
      break;
    case MethodObstacle::kTiles:
      refuse(
          "tiles do not serve images of double, nor a boundary that folds the image back (reflect, mirror) "
          "for a filter whose directions differ; the line method does");
      break;
    case MethodObstacle::kStrips:
      refuse(
          "strips take filters of at most 4 poles within 15/16 of the origin, no mirror along x, and there "
          "repeat or reflect only with a width that is a multiple of 64 and more than 256; the tiled method "
          "takes all");
      break;
    case MethodObstacle::kTruncation:
      refuse("the filter's decay length is too long in this image to leave out no more than " +
             std::to_string(choice.max_truncation_error) + "; the tiled method leaves out nothing");
      break;
  }
}

}  // namespace cumulus::recursive_filter

namespace cumulus {

DoesNotFitOnChip::DoesNotFitOnChip(std::int64_t tiles, std::int64_t tiles_on_chip)
    : std::invalid_argument("recursive_filter: the on-chip method holds " + std::to_string(tiles_on_chip) +
                            " tiles of 64 x 64 pixels on this device; a channel of the image has " +
                            std::to_string(tiles)),
      tiles_(tiles),
      tiles_on_chip_(tiles_on_chip) {}

MethodObstacle obstacle_to(const RecursiveFilter& filter, std::int64_t height, std::int64_t width,
                           bool of_doubles, const RecursiveFilterChoice& choice) {
  const auto planned =
      recursive_filter::planned_filter(filter, height, width, of_doubles, choice.max_truncation_error);
  return recursive_filter::obstacle_to(*planned, choice.method);
}

}  // namespace cumulus
