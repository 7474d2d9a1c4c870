#pragma once
// The distributions of the lookup experiment, and tables of them by the CPU backend.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/sampling_table/sampling_table.h"
#include "lookups.h"

namespace cumulus::lookups {

struct Map {
  std::string name;
  std::int64_t height;
  std::int64_t width;
  std::vector<float> weights;
};

inline Map line(const std::string& name, std::int64_t n, double (*weight)(std::int64_t, std::int64_t)) {
  Map map{name + "/" + std::to_string(n), 1, n, {}};
  for (std::int64_t i = 0; i < n; ++i) map.weights.push_back(static_cast<float>(weight(i, n)));
  return map;
}
inline std::vector<Map> lines(std::int64_t n) {
  return {line("i^20", n, [](std::int64_t i, std::int64_t m) { return std::pow((i + 1.0) / m, 20.0); }),
          line("(i mod 32 + 1)^25", n, [](std::int64_t i, std::int64_t) { return std::pow((i % 32 + 1) / 32.0, 25.0); }),
          line("(i mod 64 + 1)^35", n, [](std::int64_t i, std::int64_t) { return std::pow((i % 64 + 1) / 64.0, 35.0); }),
          line("4 spikes", n, [](std::int64_t i, std::int64_t m) {
            return i % (m / 4) == m / 8 ? 0.8 / 4 : 0.2 / static_cast<double>(m - 4);
          })};
}
/// A smooth sky with a little grain and a sun; random weights; random weights with a sun.
inline Map sky(std::int64_t height, std::int64_t width, int kind) {
  const char* names[] = {"sky", "random", "random and sun"};
  Map map{std::string(names[kind]) + "/" + std::to_string(width) + "x" + std::to_string(height), height, width, {}};
  std::uint32_t state = 1;
  for (std::int64_t y = 0; y < height; ++y) {
    const double v = (y + 0.5) / height;
    for (std::int64_t x = 0; x < width; ++x) {
      state = state * 1664525u + 1013904223u;
      const double grain = (state >> 8) / 16777216.0;
      const double u = (x + 0.5) / width;
      const double du = u - 0.6;
      const double dv = (v - 0.3) * 0.5;
      const double away = du * du + dv * dv;
      double w = kind == 0 ? 0.3 + 0.5 * (1 - v) + 0.2 * std::exp(-away * 30) + 0.02 * grain : grain;
      if (kind != 1 && away < 1e-5) w += 1e6;
      map.weights.push_back(static_cast<float>(w));
    }
  }
  return map;
}

struct alignas(256) Block {
  std::byte bytes[256];
};
struct Table {
  sampling::TableHeader header;
  std::vector<Block> blocks;
  std::size_t size() const { return blocks.size() * sizeof(Block); }
  sampling::TableView view() const { return {header, reinterpret_cast<const unsigned char*>(blocks.data()), 0}; }
};
inline Table build(const Map& map, sampling::Method method) {
  SamplingTableParams params{.height = map.height, .width = map.width, .projection = sampling::Projection::kPlane, .method = method};
  Table table{sampling_table_header(params), std::vector<Block>(sampling_table_bytes(params) / sizeof(Block))};
  CpuExecutor executor;
  executor.reserve_scratch(sampling_table_scratch_bytes(params));
  SamplingTableReport report;
  build_sampling_table(executor, HostImage<const float>(map.weights.data(), map.height, map.width, 1), params,
                       {table.blocks[0].bytes, table.size()}, &report);
  return table;
}

}  // namespace cumulus::lookups
