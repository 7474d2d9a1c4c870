#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/core/vector_width.h"
#include "kernels/core/views.h"
#include "kernels/recursive_filter/cpu/lanes.h"

// Lines of an image that the CPU filters together: a few sets of kLanes neighbouring lines, kSteps pixels of
// them at a time, pixels of the same step side by side.

namespace cumulus::recursive_filter {

/// The most sets of a group.
inline constexpr int kMaxSets = 16;
/// Groups of columns are so wide that each thread has this many, if the image is wide enough.
inline constexpr std::int64_t kTasksPerThread = 4;

/// One set's pixels at kSteps (or fewer) steps: those of step i are the kLanes elements at data + i * step.
template <class T>
struct LaneBlock {
  T* data;
  std::int64_t step;
};

template <class T>
LaneBlock<const T> as_source(const LaneBlock<T>& block) {
  return {block.data, block.step};
}

/// Where one set's pixels come from and where they go; `to` may be `from`.
template <class T>
struct LaneRoute {
  LaneBlock<const T> from;
  LaneBlock<T> to;
};

/// Steps at..at + count - 1; count is kSteps but at the lines' ends.
struct StepRange {
  std::int64_t at;
  int count;
};

template <class T>
class LineGroup {
 public:
  LineGroup(std::int64_t length, int sets) : length_(length), sets_(sets) {}
  LineGroup(const LineGroup&) = delete;
  LineGroup& operator=(const LineGroup&) = delete;

  std::int64_t length() const { return length_; }
  int sets() const { return sets_; }

  /// One set of the source, until the next call; what lines that are not there hold is any number.
  virtual LaneBlock<const T> read(const StepRange& steps, int set) = 0;

  // The causal filter goes forward from the source to the target, the anticausal one backward over the
  // target: prepare, then a route for each set, then finish.
  virtual void prepare_forward(const StepRange& steps) = 0;
  virtual LaneRoute<T> route_forward(const StepRange& steps, int set) = 0;
  virtual void finish_forward(const StepRange& steps) = 0;
  virtual void prepare_backward(const StepRange& steps) = 0;
  virtual LaneRoute<T> route_backward(const StepRange& steps, int set) = 0;
  virtual void finish_backward(const StepRange& steps) = 0;

 protected:
  ~LineGroup() = default;

 private:
  std::int64_t length_;
  int sets_;
};

/// Neighbouring columns of elements. Their rows lie in memory as they are filtered; only the columns of a
/// last set that is not full go by way of a block of their own.
template <class T>
class ColumnGroup final : public LineGroup<T> {
 public:
  /// `source` and `target` begin at the group's first column; `columns` is at most kMaxSets * kLanes.
  ColumnGroup(const LaneBlock<const T>& source, const LaneBlock<T>& target, std::int64_t length, int columns)
      : LineGroup<T>(length, divide_up(columns, kLanes)),
        source_(source),
        target_(target),
        columns_(columns) {}

  LaneBlock<const T> read(const StepRange& steps, int set) override {
    return is_full(set) ? there(source_, steps, set) : gather(source_, steps);
  }
  void prepare_forward(const StepRange& /*steps*/) override {}
  LaneRoute<T> route_forward(const StepRange& steps, int set) override { return route(source_, steps, set); }
  void finish_forward(const StepRange& steps) override { finish(steps); }
  void prepare_backward(const StepRange& /*steps*/) override {}
  LaneRoute<T> route_backward(const StepRange& steps, int set) override {
    return route(as_source(target_), steps, set);
  }
  void finish_backward(const StepRange& steps) override { finish(steps); }

 private:
  bool is_full(int set) const { return (set + 1) * kLanes <= columns_; }
  int rest() const { return columns_ % kLanes; }

  template <class E>
  static LaneBlock<E> there(const LaneBlock<E>& image, const StepRange& steps, int set) {
    return {image.data + steps.at * image.step + std::int64_t{set} * kLanes, image.step};
  }
  LaneBlock<const T> gather(const LaneBlock<const T>& image, const StepRange& steps) {
    const auto from = there(image, steps, this->sets() - 1);
    for (int i = 0; i < steps.count; ++i)
      std::copy_n(from.data + i * from.step, rest(), rest_.data() + std::int64_t{i} * kLanes);
    return {rest_.data(), kLanes};
  }
  LaneRoute<T> route(const LaneBlock<const T>& image, const StepRange& steps, int set) {
    if (is_full(set)) return {there(image, steps, set), there(target_, steps, set)};
    return {gather(image, steps), {rest_.data(), kLanes}};
  }
  void finish(const StepRange& steps) {
    if (rest() == 0) return;
    const auto to = there(target_, steps, this->sets() - 1);
    for (int i = 0; i < steps.count; ++i)
      std::copy_n(rest_.data() + std::int64_t{i} * kLanes, rest(), to.data + i * to.step);
  }

  LaneBlock<const T> source_;
  LaneBlock<T> target_;
  int columns_;
  alignas(64) std::array<T, kSteps * kLanes> rest_{};
};

/// Up to kLanes neighbouring rows, a set for each channel. A block of kSteps pixels is transposed on its way
/// in and on its way out; between the two filters it stays as it is, in the target's rows, where step i takes
/// row i's place.
template <class Vectors, class T>
class RowGroup final : public LineGroup<T> {
 public:
  /// Of the same extents; at most kLanes rows.
  RowGroup(const HostImage<const T>& source, const HostImage<T>& target)
      : LineGroup<T>(source.width, static_cast<int>(source.channels)), source_(source), target_(target) {}

  LaneBlock<const T> read(const StepRange& steps, int set) override {
    take(source_, steps);
    return as_source(block(set));
  }
  void prepare_forward(const StepRange& steps) override { take(source_, steps); }
  LaneRoute<T> route_forward(const StepRange& steps, int set) override {
    return {as_source(block(set)), is_whole(steps) ? stored(steps, set) : block(set)};
  }
  void finish_forward(const StepRange& steps) override {
    if (!is_whole(steps)) give(steps);
  }
  void prepare_backward(const StepRange& steps) override {
    if (!is_whole(steps)) take(HostImage<const T>(target_), steps);
  }
  LaneRoute<T> route_backward(const StepRange& steps, int set) override {
    return {as_source(is_whole(steps) ? stored(steps, set) : block(set)), block(set)};
  }
  void finish_backward(const StepRange& steps) override { give(steps); }

 private:
  static constexpr int kMaxChannels = 4;

  bool is_whole(const StepRange& steps) const { return steps.count == kSteps && source_.height == kLanes; }
  std::int64_t row_of_block() const { return kSteps * source_.channels; }

  LaneBlock<T> block(int set) { return {block_.data() + set * kLanes, this->sets() * kLanes}; }
  LaneBlock<T> stored(const StepRange& steps, int set) const {
    return {target_.data + steps.at * target_.channels + set * kLanes, target_.row_stride};
  }

  /// Into the block, in which an element's kLanes rows lie side by side.
  void take(const HostImage<const T>& image, const StepRange& steps) {
    const T* from = image.data + steps.at * image.channels;
    if (is_whole(steps)) {
      Vectors::call([&] {
        for (std::int64_t i = 0; i < row_of_block(); i += kLanes) {
          transpose<Vectors::kBytes>(from + i, image.row_stride, block_.data() + i * kLanes, kLanes);
        }
      });
      return;
    }
    for (std::int64_t row = 0; row < image.height; ++row) {
      for (std::int64_t i = 0; i < steps.count * image.channels; ++i) {
        block_[static_cast<std::size_t>(i * kLanes + row)] = from[row * image.row_stride + i];
      }
    }
  }
  /// Out of the block, to where its pixels belong.
  void give(const StepRange& steps) {
    T* to = target_.data + steps.at * target_.channels;
    if (is_whole(steps)) {
      Vectors::call([&] {
        for (std::int64_t i = 0; i < row_of_block(); i += kLanes) {
          transpose<Vectors::kBytes>(block_.data() + i * kLanes, kLanes, to + i, target_.row_stride);
        }
      });
      return;
    }
    for (std::int64_t row = 0; row < target_.height; ++row) {
      for (std::int64_t i = 0; i < steps.count * target_.channels; ++i) {
        to[row * target_.row_stride + i] = block_[static_cast<std::size_t>(i * kLanes + row)];
      }
    }
  }

  HostImage<const T> source_;
  HostImage<T> target_;
  alignas(64) std::array<T, kMaxChannels * kSteps * kLanes> block_{};
};

}  // namespace cumulus::recursive_filter
