#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cumulus::testing {

/// What something took, over time.
struct Series {
  std::vector<double> seconds;
  std::vector<double> values;

  void add(double time, double value) {
    seconds.push_back(time);
    values.push_back(value);
  }
};

/// A straight line through the last three quarters of a series; the first is for caches to fill.
struct Trend {
  double per_second = 0;
  double error = 0;   // the slope's standard error
  double growth = 0;  // over the time that was looked at
};

inline Trend trend_of(const Series& series) {
  const std::size_t first = series.values.size() / 4;
  const double count = static_cast<double>(series.values.size() - first);
  if (count < 8) return {};
  double mean_time = 0;
  double mean = 0;
  for (std::size_t i = first; i < series.values.size(); ++i) {
    mean_time += series.seconds[i] / count;
    mean += series.values[i] / count;
  }
  double square = 0;
  double product = 0;
  for (std::size_t i = first; i < series.values.size(); ++i) {
    square += std::pow(series.seconds[i] - mean_time, 2);
    product += (series.seconds[i] - mean_time) * (series.values[i] - mean);
  }
  Trend trend;
  trend.per_second = square > 0 ? product / square : 0;
  double rest = 0;
  for (std::size_t i = first; i < series.values.size(); ++i)
    rest += std::pow(series.values[i] - mean - trend.per_second * (series.seconds[i] - mean_time), 2);
  trend.error = square > 0 ? std::sqrt(rest / (count - 2) / square) : 0;
  trend.growth = trend.per_second * (series.seconds.back() - series.seconds[first]);
  return trend;
}

/// Growth that is more than noise: beyond what `allowed` says, and a slope that is clear of its error.
inline bool grows(const Trend& trend, double allowed) {
  constexpr double kClear = 4;
  return trend.growth > allowed && trend.per_second > kClear * trend.error;
}

/// The names of what grows by more than is allowed, each with its slope an hour; prints all.
inline std::vector<std::string> growing(const std::map<std::string, std::pair<Series, double>>& watched) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : watched) {
    const auto& [series, allowed] = entry;
    const Trend trend = trend_of(series);
    const bool found = grows(trend, allowed);
    std::printf(
        "%-12s last %.0f, slope %+.3g an hour (error %.2g), %+.3g while it was watched, %.3g allowed%s\n",
        name.c_str(), series.values.empty() ? 0.0 : series.values.back(), trend.per_second * 3600,
        trend.error * 3600, trend.growth, allowed, found ? ": GROWS" : "");
    if (found) names.push_back(name);
  }
  return names;
}

}  // namespace cumulus::testing
