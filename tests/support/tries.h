#pragma once

#include <algorithm>
#include <functional>

namespace cumulus::testing {

/// True where `holds` is at one of three tries: for what compares times, which a busy machine may upset once
/// and a fault upsets each time.
inline bool once_in_three(const std::function<bool()>& holds) { return holds() || holds() || holds(); }

/// The least of three, or the first that is at most `bar`: likewise.
inline double least_of_three(double bar, const std::function<double()>& measure) {
  double least = measure();
  for (int i = 1; i < 3 && least > bar; ++i) least = std::min(least, measure());
  return least;
}

}  // namespace cumulus::testing
