#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "kernels/kd_tree/kd_tree.h"
#include "tests/support/test_data.h"

// The default size of leaves is the one that the measurements say.

namespace cumulus {
namespace {

/// By size of leaves, and then of points, microseconds of a build and of a search for 8 neighbours of 2 *
/// 10^6 places in random order.
std::map<int, std::map<std::string, double>> read_times(std::ifstream& json) {
  const std::regex row(
      R"re("name": "(?:kd_tree_build/f32-3d/uniform/leaf-([0-9]+)|find_nearest/f32-3d/uniform/leaf-([0-9]+)/random/k-8)/([0-9]+)".*"median_us": ([0-9.]+).*"verified": true)re");
  std::map<int, std::map<std::string, double>> times;
  for (std::string line; std::getline(json, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, row)) continue;
    times[std::stoi(found[1].matched ? found[1] : found[2])][found[3]] += std::stod(found[4]);
  }
  return times;
}

TEST(KdTreeDefault, LeavesAreOfTheSizeThatBuildsAndSearchesTogetherLikeBest) {
  std::ifstream json(
      testing::test_data("../../bench/results/kd_tree/leaf_sizes_8_to_40_h100_2026-11-27.json"));
  ASSERT_TRUE(json) << "bench/results lies beside tests";
  const auto times = read_times(json);
  ASSERT_GE(times.size(), 6U);
  std::map<int, double> logarithms;
  for (const auto& [leaf_size, by_points] : times) {
    ASSERT_EQ(by_points.size(), 2U) << "leaves of " << leaf_size;
    for (const auto& [points, microseconds] : by_points) logarithms[leaf_size] += std::log(microseconds) / 2;
  }
  // Some sizes give the same trees: their times differ by noise, as of 20 and of 30.
  constexpr double kNoise = 0.001;
  const int chosen = static_cast<int>(KdTreeOptions{}.leaf_size);
  ASSERT_EQ(logarithms.count(chosen), 1U);
  for (const auto& [leaf_size, logarithm] : logarithms)
    EXPECT_GE(logarithm, logarithms[chosen] - kNoise) << "leaves of " << leaf_size;
}

}  // namespace
}  // namespace cumulus
