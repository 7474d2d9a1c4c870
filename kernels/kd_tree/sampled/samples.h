#pragma once

#include <cstdint>

#include "kernels/core/host_device.h"

// What both backends and the oracle of a build from samples agree on: which points are samples, and where
// splits change their axis.
namespace cumulus::kd_tree {

CUMULUS_HOST_DEVICE constexpr std::uint32_t scrambled(std::uint32_t bits) {
  bits *= 0x9E3779B9u;
  bits = (bits ^ (bits >> 16)) * 0x85EBCA6Bu;
  bits = (bits ^ (bits >> 13)) * 0xC2B2AE35u;
  return bits ^ (bits >> 16);
}

/// Points of which a round of a build takes its medians: one of each of `count` stretches of the points, at a
/// place within it that looks random, so that no regular order of the points can make samples of one kind.
struct SampleSet {
  std::int64_t count;
  std::uint64_t stretch;  // in 2^-16 points: at least one point

  CUMULUS_HOST_DEVICE constexpr SampleSet(std::int64_t points, std::int64_t samples)
      : count(samples),
        stretch((static_cast<std::uint64_t>(points) << 16) / static_cast<std::uint64_t>(samples)) {}

  CUMULUS_HOST_DEVICE constexpr std::int64_t index(std::int64_t sample) const {
    const auto number = static_cast<std::uint64_t>(sample);
    const std::uint64_t begin = number * stretch >> 16;
    const std::uint64_t end = (number + 1) * stretch >> 16;
    return static_cast<std::int64_t>(
        begin + (scrambled(static_cast<std::uint32_t>(sample) + 1) * (end - begin) >> 32));
  }
};

/// Likewise, of stretches of 2^shift points, so that a point knows by its index whether it is one.
CUMULUS_HOST_DEVICE constexpr bool is_sample(std::uint32_t index, int shift) {
  const std::uint32_t mask = (1u << shift) - 1;
  return ((scrambled((index >> shift) + 1) ^ index) & mask) == 0;
}

/// The sample of stretch `number`: maybe none of the points, in the last one.
CUMULUS_HOST_DEVICE constexpr std::int64_t sample_index(std::uint32_t number, int shift) {
  const std::uint32_t mask = (1u << shift) - 1;
  return (std::int64_t{number} << shift) + (scrambled(number + 1) & mask);
}

/// Levels that split along one axis, from level 0 of a part on: two and two.
inline constexpr int kLevelsAnAxis = 2;

}  // namespace cumulus::kd_tree
