#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kd_tree/math/arithmetic.h"

namespace cumulus::kd_tree {

/// A point's place in its node's order: by coordinate, then by position. May lie in memory of any type.
template <class T>
struct Candidate;

template <>
struct [[gnu::may_alias]] Candidate<float> {
  std::uint64_t value;

  Candidate() = default;
  Candidate(float x, std::size_t position)
      : value((static_cast<std::uint64_t>(ordered_key(x)) << 32) | position) {}
  bool operator<(const Candidate& other) const { return value < other.value; }
  std::size_t place() const { return value & 0xFFFFFFFFu; }
};

template <>
struct [[gnu::may_alias]] Candidate<double> {
  std::uint64_t key;
  std::uint64_t position;

  Candidate() = default;
  Candidate(double x, std::size_t at) : key(ordered_key(x)), position(at) {}
  bool operator<(const Candidate& other) const {
    return (key < other.key) | ((key == other.key) & (position < other.position));
  }
  std::size_t place() const { return position; }
};

}  // namespace cumulus::kd_tree
