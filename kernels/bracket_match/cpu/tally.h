#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>

namespace cumulus::bracket_match {

/// What the tiles find, each for itself; add() may be called by several at a time.
class Tally {
 public:
  struct Part {
    std::int64_t brackets = 0;
    std::int64_t pairs = 0;
    std::int64_t maximum_depth = 0;
    std::int64_t fault = kNoFault;  // the first
    std::int64_t fault_open = -1;   // what a close pops there, or what is unclosed; -1: nothing

    /// Of two that are the same, unclosed opens of one document, the later open lies on top.
    void record(std::int64_t where, std::int64_t open) {
      if (where > fault || (where == fault && open < fault_open)) return;
      fault = where;
      fault_open = open;
    }
  };
  static constexpr std::int64_t kNoFault = std::numeric_limits<std::int64_t>::max();

  void add(const Part& part) {
    const std::lock_guard lock(mutex_);
    sum_.brackets += part.brackets;
    sum_.pairs += part.pairs;
    sum_.maximum_depth = std::max(sum_.maximum_depth, part.maximum_depth);
    sum_.record(part.fault, part.fault_open);
  }
  const Part& sum() const { return sum_; }

 private:
  std::mutex mutex_;
  Part sum_;
};

}  // namespace cumulus::bracket_match
