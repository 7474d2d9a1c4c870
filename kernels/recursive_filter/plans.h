#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels/recursive_filter/strips/strips.h"
#include "kernels/recursive_filter/tuning.h"

// What method.h chooses: all that a launch needs besides the filter and the images. Each states the scratch
// bytes that it takes, exactly.

namespace cumulus {

/// Why a GPU cannot do as chosen.
enum class MethodObstacle {
  kNone,
  kTiles,         // images of double, or directions that differ where the image is folded back
  kStrips,        // a filter or a boundary that strips do not take
  kTruncation,    // more would be left out than max_truncation_error
  kTooManyTiles,  // for the chip
};

}  // namespace cumulus

namespace cumulus::recursive_filter {

/// A thread for each column, then for each row.
struct LinesPlan {
  std::size_t scratch_bytes = 0;
};

/// Carries completed over all tiles: the image is read twice and written once.
struct TiledPlan {
  std::size_t scratch_bytes = 0;
};

// A plan's scratch_bytes has one name, constant or not.
// NOLINTBEGIN(readability-identifier-naming)

/// A block for each tile, all of them resident; pixels in shared memory.
struct OnChipPlan {
  static constexpr std::size_t scratch_bytes = 0;
  std::int64_t images_at_once = 0;
  std::int64_t channels_at_once = 0;  // all, unless images_at_once is 1
  int parts = 0;                      // threads that share a line of a tile: kOnChipParts or kManyOnChipParts
  int last_parts = 0;                 // in launches over fewer images or channels, the last ones
};

/// The same with pixels in registers.
struct RegisterTilesPlan {
  static constexpr std::size_t scratch_bytes = 0;
  RegisterTiles form = RegisterTiles::kFew;
  std::int64_t images_at_once = 0;
};

/// Truncated windows in one pass, down strips.
struct StripsPlan {
  static constexpr std::size_t scratch_bytes = 0;
  StripDivision division;
};

/// Nothing is done.
struct RefusalPlan {
  static constexpr std::size_t scratch_bytes = 0;
  MethodObstacle obstacle = MethodObstacle::kNone;
  std::int64_t tiles = 0;  // kTooManyTiles: of a channel of an image, and what the GPU holds
  std::int64_t tiles_on_chip = 0;
};

// NOLINTEND(readability-identifier-naming)

using Plan = std::variant<LinesPlan, TiledPlan, OnChipPlan, RegisterTilesPlan, StripsPlan, RefusalPlan>;

inline std::size_t scratch_bytes_of(const Plan& plan) {
  return std::visit([](const auto& of_method) { return of_method.scratch_bytes; }, plan);
}

}  // namespace cumulus::recursive_filter
