// The lines of docs/pbrt.md, compiled against a stub of pbrt's class: what they load has the table's density.
#include "examples/pbrt_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/commands/sampling_table/table_export.h"
#include "cumulus/sampling.h"
#include "cumulus/table_file.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/support/temporary_folder.h"

namespace cumulus {
namespace {

constexpr float kPi = 3.14159265F;

/// Where a position's way over a direction may end in the next texel.
bool near_edge(float position) { return std::abs(position - std::round(position)) < 1e-3F; }

class PbrtTable : public ::testing::Test {
 protected:
  /// An equal-area map of `side` x `side` texels with a sun.
  std::vector<unsigned char> table(std::int64_t side) const {
    const auto map = testing::make_map<float>({side, side}, 1, 0, testing::MapPattern::kSun);
    std::vector<unsigned char> bytes = testing::oracle_table(map, false).bytes();
    const auto projection = sampling::Projection::kEqualArea;
    std::memcpy(bytes.data() + offsetof(sampling::TableHeader, projection), &projection, sizeof(projection));
    return bytes;
  }

  void write(const std::vector<unsigned char>& table, cli::TableFormat format) const {
    const std::vector<std::uint8_t> bytes(table.begin(), table.end());
    ASSERT_TRUE(cli::export_table(path_, ArrayView(bytes), format).ok());
  }

  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "sky.npz";
};

TEST_F(PbrtTable, HasTheDensityOfTheTable) {
  for (const std::int64_t side : {1, 7, 64, 256}) {
    const std::vector<unsigned char> bytes = table(side);
    const sampling::MappedTable mapped =
        sampling::map_table(bytes.data(), bytes.size(), 0, sampling::Checksum::kSkip);
    ASSERT_TRUE(mapped) << mapped.what();
    write(bytes, cli::TableFormat::kPbrt);
    const pbrt::PiecewiseConstant2D loaded = ReadCumulusTable(path_);
    for (std::uint32_t i = 0; i < 10000; ++i) {
      const pbrt::Point2f point{(static_cast<float>(i % 100) + 0.5F) / 100,
                                (static_cast<float>(i / 100) + 0.5F) / 100};
      float density = 0;
      const pbrt::Point2f uv = loaded.Sample(point, &density);
      // As ImageInfiniteLight has it: a direction of the equal-area map, and the density over 4 pi.
      float direction[3];
      sampling::equal_area_direction(uv.x, uv.y, direction);
      if (near_edge(uv.x * static_cast<float>(side)) || near_edge(uv.y * static_cast<float>(side))) continue;
      const float expected = sampling::pdf(mapped.view, direction);
      ASSERT_NEAR(density / (4 * kPi), expected, 1e-5F * expected) << side << ": " << uv.x << ", " << uv.y;
      ASSERT_NEAR(loaded.PDF(uv) / (4 * kPi), expected, 1e-5F * expected)
          << side << ": " << uv.x << ", " << uv.y;
    }
  }
}

TEST_F(PbrtTable, HasRowsAndColumns) {
  const auto map = testing::make_map<float>({7, 5}, 1, 0, testing::MapPattern::kAllScales);
  const testing::OracleTable oracle = testing::oracle_table(map, false);
  write(oracle.bytes(), cli::TableFormat::kPbrt);
  const pbrt::PiecewiseConstant2D loaded = ReadCumulusTable(path_);
  for (std::size_t y = 0; y < 7; ++y) {
    for (std::size_t x = 0; x < 5; ++x) {
      const pbrt::Point2f middle{(static_cast<float>(x) + 0.5F) / 5, (static_cast<float>(y) + 0.5F) / 7};
      const auto expected = static_cast<double>(oracle.density(y, x));
      ASSERT_NEAR(loaded.PDF(middle), expected, 1e-5 * expected) << y << ", " << x;
    }
  }
}

TEST_F(PbrtTable, RefusesWhatIsNoExport) {
  const auto refused = [this](const char* why) {
    EXPECT_THROW(ReadCumulusTable(path_), std::runtime_error) << why;
  };
  refused("no file");
  write(table(8), cli::TableFormat::kMitsuba);
  refused("an export for Mitsuba");
  write(table(8), cli::TableFormat::kPbrt);
  std::ifstream file(path_, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  for (std::size_t size = 0; size < 400; size += 7) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, size);
    refused("cut off");
  }
}

}  // namespace
}  // namespace cumulus
