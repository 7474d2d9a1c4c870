// The largest maps, and a sun a million times brighter than its sky: every texel with weight is reachable,
// none without is, and the density is that of the draws.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/sampling_table/sampling_table.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

/// Half floats: a sky of 0.0078125 to 0.05, a tenth of whose texels are black, and a disc of 50000 to 65000.
class SunnySky {
 public:
  SunnySky(std::int64_t height, std::int64_t width) : height_(height), width_(width) {
    texels_.reserve(static_cast<std::size_t>(height * width));
    std::uint32_t state = 1;
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        state = state * 1664525u + 1013904223u;
        const std::uint32_t random = state >> 16;
        const bool sun = std::abs(y - height / 5) < 4 && std::abs(x - 2 * width / 3) < 4;
        const std::uint32_t sky = random % 10 == 0 ? 0 : 0x2000u + random % 0x0A66u;
        texels_.push_back({static_cast<std::uint16_t>(sun ? 0x7A1Bu + random % 0x01E0u : sky)});
      }
    }
  }
  HostImage<const Float16> view() const { return {texels_.data(), height_, width_, 1}; }
  bool has_weight(std::int64_t y, std::int64_t x) const { return texel(y, x).bits != 0; }

 private:
  Float16 texel(std::int64_t y, std::int64_t x) const {
    return texels_[static_cast<std::size_t>(y * width_ + x)];
  }
  std::int64_t height_;
  std::int64_t width_;
  std::vector<Float16> texels_;
};

class Table {
 public:
  Table(const SunnySky& sky, std::int64_t height, std::int64_t width, sampling::Method method)
      : params_{.height = height, .width = width, .method = method},
        size_(sampling_table_bytes(params_)),
        bytes_(new Block[size_ / 256]) {
    executor_.reserve_scratch(sampling_table_scratch_bytes(params_));
    build_sampling_table(executor_, sky.view(), params_, {bytes_[0].bytes, size_}, &report_);
    view_.header = sampling_table_header(params_);
    view_.data = reinterpret_cast<const unsigned char*>(bytes_[0].bytes);
  }
  const SamplingTableReport& report() const { return report_; }
  const sampling::TableView& view() const { return view_; }
  const std::uint32_t* bounds(std::uint64_t offset) const {
    return reinterpret_cast<const std::uint32_t*>(view_.data + offset);
  }

 private:
  struct alignas(256) Block {
    std::byte bytes[256];  // uninitialised
  };
  CpuExecutor executor_;
  SamplingTableParams params_;
  std::size_t size_;
  std::unique_ptr<Block[]> bytes_;
  SamplingTableReport report_;
  sampling::TableView view_;
};

/// The mass of each of `count` cells in units of 2^-32, from the stored bounds as the page on the layout has
/// them.
std::vector<std::uint64_t> masses(const std::uint32_t* lower, std::size_t count) {
  std::vector<std::uint64_t> all;
  const auto place = [](std::uint32_t bound) {
    return bound == 0xFFFFFFFFu ? std::uint64_t{1} << 32 : bound;
  };
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back((i + 1 < count ? place(lower[i + 1]) : std::uint64_t{1} << 32) - place(lower[i]));
  }
  return all;
}

/// Every texel: it has mass where it has weight, and nowhere else. Some: the density that the header gives is
/// mass over solid angle, within 1e-6 of itself, and that of a sample drawn there.
void expect_precise(std::int64_t height, std::int64_t width,
                    sampling::Method method = sampling::Method::kRadixForest) {
  const SunnySky sky(height, width);
  const Table table(sky, height, width, method);
  ASSERT_EQ(table.report().outcome, SamplingTableReport::Outcome::kBuilt);
  const sampling::TableHeader& header = table.view().header;
  constexpr long double kPi = 3.14159265358979323846264338327950288L;
  const auto rows = masses(table.bounds(header.marginal_cdf_offset), static_cast<std::size_t>(height));
  std::uint64_t row_begin = 0;
  for (std::int64_t y = 0; y < height; ++y) {
    const std::uint64_t row_mass = rows[static_cast<std::size_t>(y)];
    ASSERT_GT(row_mass, 0u) << "row " << y;
    const auto columns =
        masses(table.bounds(header.row_cdf_offset) + y * width, static_cast<std::size_t>(width));
    std::uint64_t begin = 0;
    const long double band = 2 * std::sin(kPi * (2 * static_cast<long double>(y) + 1) / (2.0L * height)) *
                             std::sin(kPi / (2.0L * height));
    for (std::int64_t x = 0; x < width; ++x) {
      const std::uint64_t mass = columns[static_cast<std::size_t>(x)];
      ASSERT_EQ(mass > 0, sky.has_weight(y, x)) << "row " << y << ", column " << x;
      if (mass > 0 && (x + 31 * y) % 997 == 0) {
        // The first and the last point of the texel's share are drawn in it, with its density.
        const long double probability = std::ldexp(static_cast<long double>(row_mass) * mass, -64);
        const auto pdf = static_cast<double>(probability * width / (2 * kPi * band));
        for (const std::uint64_t at : {begin, begin + mass - 1}) {
          const auto sample = sampling::sample(table.view(), static_cast<std::uint32_t>(at),
                                               static_cast<std::uint32_t>(row_begin + row_mass / 2));
          ASSERT_EQ(sample.x, x) << "row " << y;
          ASSERT_EQ(sample.y, y);
          ASSERT_NEAR(static_cast<double>(sample.pdf), pdf, 1e-6 * pdf) << x << ", " << y;
          ASSERT_EQ(sampling::pdf(table.view(), sample.u, sample.v), sample.pdf);
        }
      }
      begin += mass;
    }
    row_begin += row_mass;
  }
  ASSERT_EQ(row_begin, std::uint64_t{1} << 32);
}

TEST(SamplingTablePrecision, OfASunAMillionTimesBrighterThanTheSky) { expect_precise(512, 1024); }
TEST(SamplingTablePrecision, SlowOfASunOverAMapOf8192Columns) { expect_precise(4096, 8192); }
/// Takes 1 GiB for the map and 2 GiB for the table; a forest's would have 6 GiB, and the same bounds.
TEST(SamplingTablePrecision, SlowOfASunOverTheLargestMap) {
  expect_precise(16384, 32768, sampling::Method::kBinarySearch);
}

}  // namespace
}  // namespace cumulus
