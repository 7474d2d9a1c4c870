#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/primitives/streaming_stores.h"

// Prefix sums of a row of pixels, a register of sums at a time.

namespace cumulus::summed_area_table {

/// Lane i of `to` becomes lane kLaneOf(i) of `from`, or 0 where that is negative. Processors with AVX-512
/// take zeros from a second vector at no cost; others have to mask them.
template <auto kLaneOf, class Bits, int... kLanes>
[[gnu::always_inline]] inline void pick_lanes(const Bits& from, Bits& to,
                                              std::integer_sequence<int, kLanes...> /*lanes*/) {
  constexpr int kCount = sizeof...(kLanes);
  if constexpr (sizeof(Bits) == 64) {
    to = __builtin_shufflevector(from, Bits{}, (kLaneOf(kLanes) < 0 ? kCount : kLaneOf(kLanes))...);
  } else {
    to = __builtin_shufflevector(from, from, (kLaneOf(kLanes) < 0 ? kLanes : kLaneOf(kLanes))...);
    if constexpr (((kLaneOf(kLanes) < 0) || ...))
      to &= Bits{(kLaneOf(kLanes) < 0 ? 0 : ~decltype(from[0] + from[0]){0})...};
  }
}

/// kBytes of sums side by side; zeros at first.
template <class Sum, int kBytes>
class SumVector {
  template <class, int>
  friend class SumVector;
  using Register __attribute__((vector_size(kBytes))) = Sum;

 public:
  using Lane = std::conditional_t<sizeof(Sum) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int kCount = kBytes / static_cast<int>(sizeof(Sum));

  [[gnu::always_inline]] void load(const Sum* from) { std::memcpy(&register_, from, sizeof(register_)); }
  [[gnu::always_inline]] void store(Sum* to) const { std::memcpy(to, &register_, sizeof(register_)); }
  /// Stores the line at `to`, a multiple of its bytes: the last `shared` sums of `previous`, then the first
  /// of these. `lanes` is lanes_of_line(shared).
  [[gnu::always_inline]] void store_line(const SumVector& previous, const SumVector<Lane, kBytes>& lanes,
                                         Sum* to) const {
    Register line;
#if defined(__clang__)
    for (int i = 0; i < kCount; ++i) {
      const Lane lane = lanes.register_[i];
      line[i] = lane < kCount ? previous.register_[lane] : register_[lane - kCount];
    }
#else
    line = __builtin_shuffle(previous.register_, register_, lanes.register_);
#endif
    std::memcpy(__builtin_assume_aligned(to, kBytes), &line, sizeof(line));
  }
  [[gnu::always_inline]] static void lanes_of_line(std::int64_t shared, SumVector<Lane, kBytes>& lanes) {
    for (int i = 0; i < kCount; ++i) lanes.register_[i] = static_cast<Lane>(kCount - shared + i);
  }
  [[gnu::always_inline]] void add(const SumVector& other) { register_ += other.register_; }
  Sum lane(std::size_t i) const { return register_[i]; }

  /// Each element becomes the sum of itself, of those of its channel before it, of kChannels side by side,
  /// and of `before`, whose lane is what comes before that one's channel; `before` then is the next vector's.
  template <int kChannels>
  [[gnu::always_inline]] void accumulate(SumVector& before) {
    if constexpr (kChannels == 1) {
      accumulate_lanes(before);
    } else {
      add_shifted<kChannels>();
      register_ += before.register_;
      take_lanes<[](int i) { return kCount - kChannels + i % kChannels; }>(before.register_);
    }
  }

 private:
  using Bits __attribute__((vector_size(kBytes))) = Lane;
  static constexpr int kGroup = 16 / static_cast<int>(sizeof(Sum));

  [[gnu::always_inline]] void accumulate_lanes(SumVector& before) {
    // Within groups of 16 bytes, whose lanes move cheaply,
    add_lanes<[](int i) { return i % kGroup < 1 ? -1 : i - 1; }>();
    if constexpr (kGroup > 2) add_lanes<[](int i) { return i % kGroup < 2 ? -1 : i - 2; }>();
    // then every second group takes the sum of the one before, and every second half that of the first.
    add_lanes<[](int i) { return i / kGroup % 2 == 0 ? -1 : i / kGroup * kGroup - 1; }>();
    if constexpr (kCount > 2 * kGroup)
      add_lanes<[](int i) { return i < kCount / 2 ? -1 : kCount / 2 - 1; }>();
    static_assert(kCount <= 4 * kGroup);
    Register last;
    take_lanes<[](int /*i*/) { return kCount - 1; }>(last);
    register_ += before.register_;
    before.register_ += last;
  }
  /// Each lane becomes the sum of every kStep-th up to itself.
  template <int kStep>
  [[gnu::always_inline]] void add_shifted() {
    if constexpr (kStep < kCount) {
      add_lanes<[](int i) { return i < kStep ? -1 : i - kStep; }>();
      add_shifted<2 * kStep>();
    }
  }

  template <auto kLaneOf>
  [[gnu::always_inline]] void take_lanes(Register& taken) const {
    const Bits bits = (Bits)register_;
    Bits lanes;
    pick_lanes<kLaneOf>(bits, lanes, std::make_integer_sequence<int, kCount>{});
    taken = (Register)lanes;
  }
  template <auto kLaneOf>
  [[gnu::always_inline]] void add_lanes() {
    Register taken;
    take_lanes<kLaneOf>(taken);
    register_ += taken;
  }

  Register register_ = {};
};

/// Pixels of a row that are summed at a time, at most.
template <class Sum>
inline constexpr std::int64_t kChunk = 1024 / static_cast<std::int64_t>(sizeof(Sum));

/// A row of sums on its way past the caches, which takes whole lines of them: what has come of a line waits
/// here for the rest. Other threads may miss the row until finish_streaming.
template <class Sum>
class StreamedRow {
 public:
  void begin(Sum* row) {
    shared_ = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) % kLineBytes / sizeof(Sum));
    line_ = row - shared_;
    pending_ = shared_;
  }
  /// Where the next sums go, at most kChunk, before advance.
  Sum* next() { return sums_ + pending_; }
  void advance(std::int64_t count) {
    pending_ += count;
    const Sum* from = sums_;
    const Sum* end = sums_ + pending_;
    if (shared_ > 0 && pending_ >= kLine) {
      std::copy(from + shared_, from + kLine, line_ + shared_);
      shared_ = 0;
      from += kLine;
      line_ += kLine;
    }
    if (shared_ == 0) {
      for (; from + kLine <= end; from += kLine, line_ += kLine) stream_line(from, line_);
    }
    if (from != sums_) pending_ = std::copy(from, end, sums_) - sums_;
  }
  void finish() { std::copy(sums_ + shared_, sums_ + pending_, line_ + shared_); }

 private:
  static constexpr std::int64_t kLineBytes = 64;
  static constexpr std::int64_t kLine = kLineBytes / static_cast<std::int64_t>(sizeof(Sum));

  static void stream_line(const Sum* from, Sum* to) {
    constexpr std::int64_t kPart = 16 / static_cast<std::int64_t>(sizeof(Sum));
    for (std::int64_t i = 0; i < kLine; i += kPart) stream_16_bytes(from + i, to + i);
  }

  Sum* line_;             // the line that comes next
  std::int64_t shared_;   // sums at its begin that are not this row's
  std::int64_t pending_;  // sums of it that have come, with those
  alignas(kLineBytes) Sum sums_[kLine + kChunk<Sum>];
};

}  // namespace cumulus::summed_area_table
