#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

// The distributions of Binder and Keller's Table 1 and Figure 12, and how they can be read.

namespace cumulus::bench {

inline constexpr std::uint32_t kCells = 100;

struct Loads {
  int most = 0;
  double average = 0;
  double average32 = 0;  // of the slowest of 32 independent searches
};

/// The paper says neither where i begins nor where its spikes are.
struct Reading {
  const char* name;
  int first;      ///< Cells are i = first to first + 99.
  int spikes_at;  ///< Spikes are where i is this modulo 25.
};
inline constexpr Reading kReadings[] = {{"i = 1 to 100, spikes at 13, 38, 63, 88", 1, 13},
                                        {"i = 0 to 99, spikes at 3, 28, 53, 78", 0, 3}};

struct Distribution {
  const char* name;
  double (*weight)(int i, const Reading& reading);
  Loads paper_binary;
  Loads paper_forest;
};

/// The paper gives no numbers for the spikes: four that share 0.8 of the mass, as its plot suggests.
inline const std::vector<Distribution>& distributions() {
  static const std::vector<Distribution> all = {
      {"i^20", [](int i, const Reading&) { return std::pow(i, 20); }, {8, 1.25, 3.66}, {16, 1.23, 3.46}},
      {"(i mod 32 + 1)^25",
       [](int i, const Reading&) { return std::pow(i % 32 + 1, 25); },
       {6, 1.30, 4.62},
       {13, 1.22, 3.72}},
      {"(i mod 64 + 1)^35",
       [](int i, const Reading&) { return std::pow(i % 64 + 1, 35); },
       {7, 1.19, 4.33},
       {13, 1.11, 2.46}},
      {"4 spikes",
       [](int i, const Reading& reading) { return i % 25 == reading.spikes_at ? 0.8 / 4 : 0.2 / 96; },
       {4, 1.60, 3.98},
       {5, 1.67, 4.93}}};
  return all;
}

inline std::vector<double> weights_of(const Distribution& distribution, const Reading& reading) {
  std::vector<double> weights;
  for (int i = 0; i < static_cast<int>(kCells); ++i) {
    weights.push_back(distribution.weight(reading.first + i, reading));
  }
  return weights;
}

}  // namespace cumulus::bench
