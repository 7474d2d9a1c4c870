#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "kernels/sampling_table/sampling_table.h"
#include "tests/support/test_data.h"

// The default method is the one that the measurements say.

namespace cumulus {
namespace {

/// Samples a second by method, of each map or line with each kind of points.
using Comparison = std::map<std::string, std::map<std::string, double>>;

Comparison read_comparison(std::ifstream& json) {
  const std::regex row(
      R"re("name": "compare_methods/([^"]+)/([a-z0-9-]+)/[0-9]+".*"items_per_s": ([0-9.e+]+).*"verified": true)re");
  Comparison comparison;
  for (std::string line; std::getline(json, line);) {
    std::smatch found;
    if (std::regex_search(line, found, row)) comparison[found[1]][found[2]] = std::stod(found[3]);
  }
  return comparison;
}

TEST(SamplingTableDefault, IsTheMonotoneMethodWhoseSamplesComeFastestOnAverage) {
  using sampling::Method;
  std::ifstream json(testing::test_data("../../bench/results/sampling_table/methods_h200_2026-11-28.json"));
  if (!json) GTEST_SKIP() << "bench/results is not here";
  const Comparison comparison = read_comparison(json);
  ASSERT_GE(comparison.size(), 30U);
  const std::map<std::string, Method> methods = {{"balanced-forest", Method::kBalancedForest},
                                                 {"radix-forest", Method::kRadixForest},
                                                 {"cutpoint-binary", Method::kCutpointBinary},
                                                 {"binary-search", Method::kBinarySearch}};
  std::map<double, Method> by_rate;
  for (const auto& [name, method] : methods) {
    double logarithms = 0;
    for (const auto& [subject, rates] : comparison) {
      ASSERT_EQ(rates.count(name), 1U) << subject << ", " << name;
      logarithms += std::log(rates.at(name));
    }
    by_rate[logarithms / static_cast<double>(comparison.size())] = method;
  }
  EXPECT_EQ(by_rate.rbegin()->second, SamplingTableParams{}.method);
}

}  // namespace
}  // namespace cumulus
