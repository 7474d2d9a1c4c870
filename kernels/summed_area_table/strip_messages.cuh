#pragma once

#include <cstdint>

#include "kernels/summed_area_table/look_back.cuh"
#include "kernels/summed_area_table/strip_plan.cuh"
#include "kernels/summed_area_table/warp_sums.cuh"

// What the blocks of strip_build.cuh tell each other: the totals of their rows.

namespace cumulus::summed_area_table {

/// Where a block works.
struct Strip {
  std::uint32_t plane;
  std::uint32_t number;  // in the plane
  __device__ std::uint32_t in_group() const { return number % kStripsOfGroup; }
  __device__ std::uint32_t group() const { return number / kStripsOfGroup; }
};

/// A lane's share of a band's totals: of neighbouring rows.
template <class P>
struct LaneTotals {
  typename P::Sum v[P::kLaneWords];

  __device__ void publish_at(Word<typename P::Sum>* words) const {
#pragma unroll
    for (int i = 0; i < P::kLaneWords; ++i) publish(words + i * 32, State::kOwn, v[i]);
  }
  /// Adds what `count` others publish at `words`, `stride` apart, in their order.
  __device__ void add(const Word<typename P::Sum>* words, std::int64_t stride, std::uint32_t count) {
    constexpr std::uint32_t kAtOnce =
        P::kLaneWords * sizeof(Word<typename P::Sum>) <= 16 ? kStripsOfGroup : kStripsOfGroup / 2;
#pragma unroll 1
    for (std::uint32_t first = 0; first < count; first += kAtOnce) {
      Published<typename P::Sum> others[kAtOnce][P::kLaneWords];
      bool complete = false;
      while (!complete) {
        complete = true;
#pragma unroll
        for (std::uint32_t k = 0; k < kAtOnce; ++k) {
#pragma unroll
          for (int i = 0; i < P::kLaneWords; ++i)
            if (first + k < count) others[k][i] = read(words + (first + k) * stride + i * 32);
        }
#pragma unroll
        for (std::uint32_t k = 0; k < kAtOnce; ++k) {
#pragma unroll
          for (int i = 0; i < P::kLaneWords; ++i)
            complete = complete && (first + k >= count || others[k][i].state == State::kOwn);
        }
      }
#pragma unroll
      for (std::uint32_t k = 0; k < kAtOnce; ++k) {
#pragma unroll
        for (int i = 0; i < P::kLaneWords; ++i)
          if (first + k < count) v[i] += others[k][i].value;
      }
    }
  }
};

/// One of the warps that talk to other blocks: every kMessengers-th message is its own.
template <class P>
class Messenger {
 public:
  using Sum = typename P::Sum;

  __device__ Messenger(const StripArguments<P>& a, StripMemory<P>& memory, Strip strip)
      : a_(a), memory_(memory), strip_(strip) {}

  __device__ void run(std::uint32_t first) {
#pragma unroll 1
    for (std::uint32_t message = first; message < a_.bands * P::kMessages; message += P::kMessengers) {
      const std::uint32_t band = message / P::kMessages;
      const std::uint32_t part = message % P::kMessages;
      memory_.totals_ready[band % P::kRing].wait(band / P::kRing);
      const int first_word = static_cast<int>(part) * P::kLaneWords * 32 + lane_index() * P::kLaneWords;
      LaneTotals<P> sums;
#pragma unroll
      for (int i = 0; i < P::kLaneWords; ++i) sums.v[i] = memory_.totals[band % P::kRing][first_word + i];
      sums = gather(sums, message);
      scan_down(sums, message);
#pragma unroll
      for (int i = 0; i < P::kLaneWords; ++i) memory_.left[band % P::kRing][first_word + i] = sums.v[i];
      memory_.left_ready[band % P::kRing][part].arrive();
    }
  }

 private:
  /// Publishes the strip's own totals; what lies left of the strip in each row.
  __device__ LaneTotals<P> gather(LaneTotals<P> own, std::uint32_t message) const {
    const std::int64_t words = a_.words_of_strip();
    // A lane's rows are neighbours, its words 32 apart, so that lanes' words are neighbours.
    Word<Sum>* of_message = a_.words + std::int64_t{message} * P::kLaneWords * 32 + lane_index();
    Word<Sum>* strips = of_message + a_.first_strip(strip_.plane) * words;
    Word<Sum>* groups = of_message + a_.first_group(strip_.plane) * words;
    own.publish_at(strips + strip_.number * words);
    LaneTotals<P> left{};
    left.add(strips + (strip_.number - strip_.in_group()) * words, words, strip_.in_group());
    if (strip_.in_group() == kStripsOfGroup - 1) {
#pragma unroll
      for (int i = 0; i < P::kLaneWords; ++i) own.v[i] += left.v[i];
      own.publish_at(groups + strip_.group() * words);
    }
    left.add(groups, words, strip_.group());
    return left;
  }

  /// Adds to each row what lies left of the strip in all rows above.
  __device__ void scan_down(LaneTotals<P>& left, std::uint32_t message) {
    Sum through_lane[P::kChannels];
#pragma unroll
    for (int i = P::kChannels; i < P::kLaneWords; ++i) left.v[i] += left.v[i - P::kChannels];
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel)
      through_lane[channel] = warp_inclusive_scan(left.v[P::kLaneWords - P::kChannels + channel]);
    const Sum* above = nullptr;
    if (message > 0) {
      const std::uint32_t band = (message - 1) / P::kMessages;
      const std::uint32_t part = (message - 1) % P::kMessages;
      memory_.above_ready[band % P::kRing][part].wait(band / P::kRing);
      above = memory_.above[band % P::kRing][part];
    }
    const std::uint32_t band = message / P::kMessages;
    const std::uint32_t part = message % P::kMessages;
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel) {
      const Sum all_above = above == nullptr ? Sum{0} : above[channel];
      const Sum before = all_above + before_lane(through_lane[channel]);
#pragma unroll
      for (int i = channel; i < P::kLaneWords; i += P::kChannels) left.v[i] += before;
      if (lane_index() == 31)
        memory_.above[band % P::kRing][part][channel] = all_above + through_lane[channel];
    }
    memory_.above_ready[band % P::kRing][part].arrive();
  }

  const StripArguments<P>& a_;
  StripMemory<P>& memory_;
  const Strip strip_;
};

}  // namespace cumulus::summed_area_table
