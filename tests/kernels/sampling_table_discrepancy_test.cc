// Monotone methods hand the star discrepancy of their points on to the samples; the alias table does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/support/executors.h"
#include "tests/support/sampling_table_builds.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::build_table;
using testing::BuiltTable;
using testing::TestMap;

using Points = std::vector<std::pair<double, double>>;

/// The star discrepancy of points of the unit square, exactly: the largest difference between a box's area
/// and its share of the points, over boxes [0, x) x [0, y) and [0, x] x [0, y] whose sides end at points or
/// at 1.
double star_discrepancy(Points points) {
  std::sort(points.begin(), points.end());
  const auto n = static_cast<double>(points.size());
  double worst = 0;
  std::vector<double> inside;  // the y of the points to the left, sorted
  for (std::size_t i = 0; i <= points.size(); ++i) {
    const double x = i < points.size() ? points[i].first : 1.0;
    for (std::size_t k = 0; k <= inside.size(); ++k) {
      const double y = k < inside.size() ? inside[k] : 1.0;
      const auto below = static_cast<double>(k);
      worst = std::max({worst, x * y - below / n,
                        below / n - (i > 0 ? points[i - 1].first : 0.0) * (k > 0 ? inside[k - 1] : 0.0)});
    }
    if (i < points.size())
      inside.insert(std::upper_bound(inside.begin(), inside.end(), points[i].second), points[i].second);
  }
  return worst;
}

TEST(StarDiscrepancy, IsThatOfSetsWhereItIsKnown) {
  EXPECT_NEAR(star_discrepancy({{0.5, 0.5}}), 0.75, 1e-12);
  EXPECT_NEAR(star_discrepancy({{0.0, 0.0}, {0.0, 0.0}}), 1.0, 1e-12);
  EXPECT_NEAR(star_discrepancy({{0.25, 0.25}, {0.75, 0.25}, {0.25, 0.75}, {0.75, 0.75}}), 1 - 0.5625, 1e-12);
}

/// A density that is a product of one along each side: there boxes of the plane are boxes of the samples.
struct Product {
  std::vector<double> across;
  std::vector<double> down;

  static Product of(std::uint32_t height, std::uint32_t width) {
    Product product;
    for (std::uint32_t x = 0; x < width; ++x)
      product.across.push_back(std::floor(1 + 200 * std::exp(-std::pow((x - 0.3 * width) / 3.0, 2))));
    for (std::uint32_t y = 0; y < height; ++y)
      product.down.push_back(std::floor(1 + 100 * std::pow(std::sin(9.0 * (y + 0.5) / height), 4)));
    return product;
  }
  TestMap<float> map() const {
    const auto width = static_cast<std::int64_t>(across.size());
    TestMap<float> map{static_cast<std::int64_t>(down.size()), width, 1, width, {}};
    for (const double y : down) {
      for (const double x : across) map.elements.push_back(static_cast<float>(x * y));
    }
    return map;
  }
};

/// The share of a side's weights before `position`.
double mass_before(const std::vector<double>& weights, double position) {
  const double at = position * static_cast<double>(weights.size());
  double before = 0;
  double all = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    before += weights[i] * std::clamp(at - static_cast<double>(i), 0.0, 1.0);
    all += weights[i];
  }
  return before / all;
}

constexpr std::int64_t kCount = 1024;

template <class Backend>
class SampleDiscrepancy : public testing::OnEveryBackend<Backend> {
 protected:
  /// Of the samples with respect to the density: that of the shares of it that they lie at.
  double of_samples(const Product& product, int method) {
    auto& backend = this->backend();
    const BuiltTable built = build_table(
        backend, product.map(),
        {.projection = sampling::Projection::kPlane, .method = static_cast<sampling::Method>(method)});
    sampling::TableHeader header;
    EXPECT_EQ(sampling::parse_header(built.table.data(), built.table.size(), built.table.size(), header),
              sampling::TableError::kNone);
    BackendArray<Backend, unsigned char> table(backend, built.table);
    BackendArray<Backend, float> position(backend, 2 * kCount);
    BackendArray<Backend, float> pdf(backend, kCount);
    draw_samples(backend.executor(), header,
                 {reinterpret_cast<const std::byte*>(table.span().data()), table.span().size()},
                 {.count = kCount, .sequence = PointSequence::kHammersley},
                 {position.span(), {}, pdf.span()});
    const std::vector<float> drawn = position.to_host();
    Points points;
    for (std::size_t i = 0; i < drawn.size(); i += 2) {
      points.emplace_back(mass_before(product.across, static_cast<double>(drawn[i])),
                          mass_before(product.down, static_cast<double>(drawn[i + 1])));
    }
    return star_discrepancy(points);
  }
};
TYPED_TEST_SUITE(SampleDiscrepancy, testing::Backends, testing::BackendNames);

TYPED_TEST(SampleDiscrepancy, IsThatOfThePointsByMonotoneMethodsAndNotByTheAliasTable) {
  Points hammersley;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const sampling::FixedPoint2 point = sampling::hammersley_point(i, kCount);
    hammersley.emplace_back(std::ldexp(point.x, -32), std::ldexp(point.y, -32));
  }
  const double of_points = star_discrepancy(hammersley);
  for (const auto& [height, width] : {std::pair{1u, 100u}, std::pair{37u, 61u}, std::pair{64u, 128u}}) {
    const Product product = Product::of(height, width);
    for (const int method : testing::kMonotoneMethods)
      EXPECT_NEAR(this->of_samples(product, method), of_points, 1e-5) << "method " << method;
    EXPECT_GT(this->of_samples(product, testing::kAliasMethod), 1.5 * of_points) << height << " x " << width;
  }
}

}  // namespace
}  // namespace cumulus
