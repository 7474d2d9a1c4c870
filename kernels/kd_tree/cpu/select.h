#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/core/parallel.h"
#include "kernels/kd_tree/cpu/candidate.h"

// Exact selection by sampling (R. Floyd and R. Rivest, "Expected time bounds for selection", CACM 1975),
// whose passes over the data have no branches to mispredict.
namespace cumulus::kd_tree {

/// Ranges longer than this are cut into chunks for several threads.
inline constexpr std::size_t kChunkPoints = std::size_t{1} << 13;
inline constexpr std::size_t kParallelPoints = 4 * kChunkPoints;

constexpr std::size_t chunk_count(std::size_t count) {
  return count < kParallelPoints ? 1 : divide_up(count, kChunkPoints);
}

/// Calls body(chunk, first, last) for each chunk of [0, count), in parallel, and in slices unless within one.
inline void for_parallel_chunks(CpuExecutor& executor, std::size_t count,
                                const std::function<void(std::size_t, std::size_t, std::size_t)>& body) {
  const auto chunks = static_cast<std::int64_t>(chunk_count(count));
  parallel_ranges(executor, chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto chunk = static_cast<std::size_t>(begin); chunk < static_cast<std::size_t>(end); ++chunk)
      body(chunk, chunk * kChunkPoints, std::min(count, (chunk + 1) * kChunkPoints));
  });
}

template <class Body>
void for_chunks(CpuExecutor& executor, std::size_t count, const Body& body) {
  if (chunk_count(count) == 1) return body(std::size_t{0}, std::size_t{0}, count);
  for_parallel_chunks(executor, count, std::cref(body));
}

/// The first candidate that is to go right where `position` of `count` go left. `candidate(i)` makes the
/// candidate of position i; `memory` has room for `count` of them.
template <class T, class MakeCandidate>
class Selection {
 public:
  Selection(CpuExecutor& executor, std::size_t count, Candidate<T>* memory, const MakeCandidate& candidate)
      : executor_(executor), count_(count), memory_(memory), candidate_(candidate) {}

  Candidate<T> at(std::size_t position) const {
    if (count_ > kSampledPoints) {
      const Bracket bracket = sample(position);
      const Sieved sieved = sieve(bracket);
      if (position >= sieved.below && position - sieved.below < sieved.inside) {
        return nth(sieved.inside, position - sieved.below);
      }
    }
    for (std::size_t i = 0; i < count_; ++i) memory_[i] = candidate_(i);
    return nth(count_, position);
  }

 private:
  static constexpr std::size_t kSampledPoints = 512;

  struct Bracket {
    Candidate<T> lower;
    Candidate<T> upper;
  };
  struct Sieved {
    std::size_t below = 0;   // candidates less than the bracket's lower end
    std::size_t inside = 0;  // candidates between its ends, which `memory_` begins with
  };

  Candidate<T> nth(std::size_t count, std::size_t position) const {
    std::nth_element(memory_, memory_ + position, memory_ + count);
    return memory_[position];
  }

  /// Two candidates that the one at `position` is very probably between.
  Bracket sample(std::size_t position) const {
    const auto points = static_cast<double>(count_);
    const auto size = static_cast<std::size_t>(0.5 * std::cbrt(points * points));
    for (std::size_t i = 0; i < size; ++i) memory_[i] = candidate_((2 * i + 1) * count_ / (2 * size));
    const double share = static_cast<double>(position) / points;
    const double margin = 3 * std::sqrt(static_cast<double>(size) * share * (1 - share)) + 1;
    const double centre = share * static_cast<double>(size);
    const auto last = static_cast<double>(size - 1);
    const auto first_index = static_cast<std::size_t>(std::clamp(centre - margin, 0.0, last));
    const auto last_index = static_cast<std::size_t>(std::clamp(centre + margin, 0.0, last));
    std::nth_element(memory_, memory_ + first_index, memory_ + size);
    const Candidate<T> lower = memory_[first_index];
    std::nth_element(memory_ + first_index, memory_ + last_index, memory_ + size);
    return {lower, memory_[last_index]};
  }

  Sieved sieve(const Bracket& bracket) const {
    std::vector<Sieved> chunks(chunk_count(count_));
    for_chunks(executor_, count_, [&](std::size_t chunk, std::size_t first, std::size_t last) {
      Sieved sieved;
      Candidate<T>* kept = memory_ + first;
      for (std::size_t i = first; i < last; ++i) {
        const Candidate<T> candidate = candidate_(i);
        const bool below = candidate < bracket.lower;
        const bool above = bracket.upper < candidate;
        kept[sieved.inside] = candidate;
        sieved.below += below ? 1 : 0;
        sieved.inside += (below | above) ? 0 : 1;
      }
      chunks[chunk] = sieved;
    });
    Sieved all = chunks[0];
    for (std::size_t chunk = 1; chunk < chunks.size(); ++chunk) {
      const Candidate<T>* kept = memory_ + chunk * kChunkPoints;
      std::copy(kept, kept + chunks[chunk].inside, memory_ + all.inside);
      all.below += chunks[chunk].below;
      all.inside += chunks[chunk].inside;
    }
    return all;
  }

  CpuExecutor& executor_;
  std::size_t count_;
  Candidate<T>* memory_;
  const MakeCandidate& candidate_;
};

}  // namespace cumulus::kd_tree
