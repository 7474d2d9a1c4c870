// The largest maps, and a sun a million times brighter than its sky: every texel with weight is reachable,
// none without is, and the density is that of the draws.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
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

/// A table of a sky in host memory, which is not filled before it is built.
class Table {
 public:
  Table(std::int64_t height, std::int64_t width, sampling::Method method)
      : params_{.height = height, .width = width, .method = method},
        size_(sampling_table_bytes(params_)),
        bytes_(new Block[size_ / 256]) {
    view_.header = sampling_table_header(params_);
    view_.data = reinterpret_cast<const unsigned char*>(bytes_[0].bytes);
  }
  void build(CpuExecutor& executor, const SunnySky& sky) {
    executor.reserve_scratch(sampling_table_scratch_bytes<Space::kHost>(params_));
    build_sampling_table(executor, sky.view(), params_, {bytes_[0].bytes, size_}, &report_);
  }
  /// Gives the device's copy.
  Memory<Space::kDevice> build(CudaExecutor& executor, const SunnySky& sky) {
    const HostImage<const Float16> map = sky.view();
    const std::size_t map_bytes = static_cast<std::size_t>(params_.height * params_.width) * sizeof(Float16);
    const Memory<Space::kDevice> weights = executor.allocate(map_bytes);
    Memory<Space::kDevice> table = executor.allocate(size_);
    executor.upload({reinterpret_cast<const std::byte*>(map.data), map_bytes}, {weights.data(), map_bytes});
    executor.reserve_scratch(sampling_table_scratch_bytes<Space::kDevice>(params_));
    build_sampling_table(executor,
                         DeviceImage<const Float16>(reinterpret_cast<const Float16*>(weights.data()),
                                                    params_.height, params_.width, 1),
                         params_, {table.data(), size_}, &report_);
    executor.download({table.data(), size_}, {bytes_[0].bytes, size_});
    executor.synchronize();
    return table;
  }
  std::size_t size() const { return size_; }
  const SamplingTableReport& report() const { return report_; }
  const sampling::TableView& view() const { return view_; }
  const std::uint32_t* bounds(std::uint64_t offset) const {
    return reinterpret_cast<const std::uint32_t*>(view_.data + offset);
  }

 private:
  struct alignas(256) Block {
    std::byte bytes[256];  // uninitialised
  };
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

/// Points, and what they draw.
struct Checked {
  std::vector<sampling::FixedPoint2> points;
  std::vector<sampling::Sample> samples;
};

/// Every texel: it has mass where it has weight, and nowhere else. Some, which are added to `checked`: the
/// density that the header gives is mass over solid angle, within 1e-6 of itself, and that of a sample drawn
/// there.
void expect_precise(const SunnySky& sky, const Table& table, Checked& checked) {
  ASSERT_EQ(table.report().outcome, SamplingTableReport::Outcome::kBuilt);
  const sampling::TableHeader& header = table.view().header;
  const std::int64_t height = header.height;
  const std::int64_t width = header.width;
  const auto rows = masses(table.bounds(header.marginal_cdf_offset), static_cast<std::size_t>(height));
  std::uint64_t row_begin = 0;
  for (std::int64_t y = 0; y < height; ++y) {
    const std::uint64_t row_mass = rows[static_cast<std::size_t>(y)];
    ASSERT_GT(row_mass, 0u) << "row " << y;
    const auto columns =
        masses(table.bounds(header.row_cdf_offset) + y * width, static_cast<std::size_t>(width));
    std::uint64_t begin = 0;
    const long double band =
        2 *
        std::sin(std::numbers::pi_v<long double> * (2 * static_cast<long double>(y) + 1) / (2.0L * height)) *
        std::sin(std::numbers::pi_v<long double> / (2.0L * height));
    for (std::int64_t x = 0; x < width; ++x) {
      const std::uint64_t mass = columns[static_cast<std::size_t>(x)];
      ASSERT_EQ(mass > 0, sky.has_weight(y, x)) << "row " << y << ", column " << x;
      if (mass > 0 && (x + 31 * y) % 887 == 0) {
        // The first and the last point of the texel's share are drawn in it, with its density.
        const long double probability = std::ldexp(static_cast<long double>(row_mass) * mass, -64);
        const auto pdf =
            static_cast<double>(probability * width / (2 * std::numbers::pi_v<long double> * band));
        for (const std::uint64_t at : {begin, begin + mass - 1}) {
          const sampling::FixedPoint2 point{static_cast<std::uint32_t>(at),
                                            static_cast<std::uint32_t>(row_begin + row_mass / 2)};
          const auto sample = sampling::sample(table.view(), point.x, point.y);
          ASSERT_EQ(sample.x, x) << "row " << y;
          ASSERT_EQ(sample.y, y);
          ASSERT_NEAR(static_cast<double>(sample.pdf), pdf, 1e-6 * pdf) << x << ", " << y;
          ASSERT_EQ(sampling::pdf(table.view(), sample.u, sample.v), sample.pdf);
          checked.points.push_back(point);
          checked.samples.push_back(sample);
        }
      }
      begin += mass;
    }
    row_begin += row_mass;
  }
  ASSERT_EQ(row_begin, std::uint64_t{1} << 32);
}

void expect_precise_on_the_cpu(std::int64_t height, std::int64_t width,
                               sampling::Method method = sampling::Method::kRadixForest) {
  const SunnySky sky(height, width);
  Table table(height, width, method);
  CpuExecutor executor;
  table.build(executor, sky);
  Checked checked;
  expect_precise(sky, table, checked);
}

TEST(SamplingTablePrecision, OfASunAMillionTimesBrighterThanTheSky) { expect_precise_on_the_cpu(512, 1024); }
TEST(SamplingTablePrecision, SlowOfASunOverAMapOf8192Columns) { expect_precise_on_the_cpu(4096, 8192); }
/// Takes 1 GiB for the map and 2 GiB for the table; a forest's would have 6 GiB, and the same bounds.
TEST(SamplingTablePrecision, SlowOfASunOverTheLargestMap) {
  expect_precise_on_the_cpu(16384, 32768, sampling::Method::kBinarySearch);
}

using SamplingTablePrecisionOnCuda = testing::OnEveryBackend<testing::CudaBackend>;

/// Takes 8 GB of the device's memory, and as much of the host's.
TEST_F(SamplingTablePrecisionOnCuda, SlowOfASunOverTheLargestMapByAForest) {
  constexpr std::int64_t kHeight = 16384;
  constexpr std::int64_t kWidth = 32768;
  const SunnySky sky(kHeight, kWidth);
  Table table(kHeight, kWidth, sampling::Method::kRadixForest);
  const Memory<Space::kDevice> on_device = table.build(executor(), sky);
  ASSERT_GT(table.size(), std::size_t{3} << 31);
  Checked checked;
  expect_precise(sky, table, checked);
  const std::size_t count = checked.points.size();
  ASSERT_GT(count, std::size_t{1} << 20);  // a GPU samples many points in another way than few
  testing::BackendArray<testing::CudaBackend, sampling::FixedPoint2> points(backend(), checked.points);
  testing::BackendArray<testing::CudaBackend, float> position(backend(), 2 * count);
  testing::BackendArray<testing::CudaBackend, float> pdf(backend(), count);
  sample_points(executor(), table.view().header, {on_device.data(), table.size()}, points.const_span(), 0,
                {position.span(), {}, pdf.span()});
  const std::vector<float> drawn = position.to_host();
  const std::vector<float> density = pdf.to_host();
  for (std::size_t i = 0; i < count; ++i) {
    const sampling::Sample& expected = checked.samples[i];
    ASSERT_EQ(static_cast<std::uint32_t>(drawn[2 * i] * static_cast<float>(kWidth)), expected.x) << i;
    ASSERT_EQ(static_cast<std::uint32_t>(drawn[2 * i + 1] * static_cast<float>(kHeight)), expected.y) << i;
    ASSERT_NEAR(density[i], expected.pdf, 1e-6F * expected.pdf) << i;
  }
}

}  // namespace
}  // namespace cumulus
