// Tables as other renderers' arrays: written, read back, and evaluated as those renderers do it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/commands/sampling_table/table_export.h"
#include "cli/files/npz_reader.h"
#include "cumulus/sampling.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/support/temporary_folder.h"

namespace cumulus::cli {
namespace {

using testing::make_map;
using testing::MapPattern;
using testing::MapShape;
using testing::OracleTable;

class SamplingTableExport : public ::testing::Test {
 protected:
  std::map<std::string, Array> exported(const std::vector<unsigned char>& table, TableFormat format) const {
    const std::vector<std::uint8_t> bytes(table.begin(), table.end());
    const absl::Status written = export_table(path_, ArrayView(bytes), format);
    EXPECT_TRUE(written.ok()) << written.message();
    auto arrays = read_npz(path_);
    EXPECT_TRUE(arrays.ok()) << arrays.status().message();
    return arrays.ok() ? *std::move(arrays) : std::map<std::string, Array>();
  }

  template <class T>
  static std::vector<T> values(const std::map<std::string, Array>& arrays, const std::string& name) {
    const auto found = arrays.find(name);
    if (found == arrays.end()) {
      ADD_FAILURE() << "no array " << name;
      return {};
    }
    const auto span = found->second.values<T>();
    EXPECT_TRUE(span.ok()) << name << ": " << span.status().message();
    return span.ok() ? std::vector<T>(span->begin(), span->end()) : std::vector<T>();
  }

  /// Lat-long and plane, with rows of zeros, with a sun, of one texel.
  template <class Check>
  static void for_every_table(const Check& check) {
    for (const MapShape shape : {MapShape{1, 1}, MapShape{7, 5}, MapShape{37, 61}, MapShape{128, 256}}) {
      for (const MapPattern pattern : {MapPattern::kZeroBands, MapPattern::kSun, MapPattern::kAllScales}) {
        const auto map = make_map<float>(shape, 1, 0, pattern);
        for (const bool lat_long : {true, false}) {
          SCOPED_TRACE(std::string(name_of(pattern)) + ", " + std::to_string(shape.height) + " rows" +
                       (lat_long ? ", lat-long" : ", plane"));
          check(oracle_table(map, lat_long));
        }
      }
    }
  }

  /// The probability of a texel.
  static double probability(const OracleTable& oracle, std::size_t y, std::size_t x) {
    return static_cast<double>(oracle.density(y, x) * oracle.texel_size(y));
  }

  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "table.npz";
};

void expect_near(double value, double expected) { ASSERT_NEAR(value, expected, 1e-6 * expected); }

TEST_F(SamplingTableExport, ThePlainArraysHaveTheTablesDensity) {
  for_every_table([this](const OracleTable& oracle) {
    const auto arrays = exported(oracle.bytes(), TableFormat::kNpz);
    const std::size_t width = oracle.width();
    const std::size_t height = oracle.height();
    const auto function = values<double>(arrays, "function");
    const auto marginal = values<double>(arrays, "marginal_cdf");
    const auto conditional = values<double>(arrays, "conditional_cdf");
    const auto size = values<double>(arrays, "texel_size");
    ASSERT_EQ(function.size(), width * height);
    ASSERT_EQ(marginal.size(), height + 1);
    ASSERT_EQ(conditional.size(), height * (width + 1));
    ASSERT_EQ(size.size(), height);
    EXPECT_EQ(marginal.front(), 0.0);
    EXPECT_EQ(marginal.back(), 1.0);
    for (std::size_t y = 0; y < height; ++y) {
      const double* row = &conditional[y * (width + 1)];
      for (std::size_t x = 0; x < width; ++x) {
        const auto pdf = static_cast<double>(oracle.density(y, x));
        expect_near(function[y * width + x] / static_cast<double>(width * height) / size[y], pdf);
        expect_near((marginal[y + 1] - marginal[y]) * (row[x + 1] - row[x]) / size[y], pdf);
      }
    }
  });
}

TEST_F(SamplingTableExport, TexelsOfAnEqualAreaMapShareTheWholeSphere) {
  const auto map = make_map<float>(MapShape{8, 8}, 1, 0, MapPattern::kSun);
  std::vector<unsigned char> table = oracle_table(map, false).bytes();
  const sampling::Projection projection = sampling::Projection::kEqualArea;
  std::memcpy(table.data() + offsetof(sampling::TableHeader, projection), &projection, sizeof(projection));
  const auto size = values<double>(exported(table, TableFormat::kNpz), "texel_size");
  ASSERT_EQ(size.size(), 8U);
  for (const double texel : size) EXPECT_NEAR(texel, 4 * 3.14159265358979323846 / 64, 1e-12);
}

/// pbrt-v4's PiecewiseConstant1D::Sample and PiecewiseConstant2D::PDF, as its book has them.
struct PbrtRow {
  const float* func;
  const float* cdf;
  std::size_t count;
  float func_int;

  std::size_t find(float u) const {
    const float* above = std::upper_bound(cdf, cdf + count + 1, u);
    return std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(above - cdf - 1, 0)), count - 1);
  }
};

TEST_F(SamplingTableExport, PbrtsArraysHaveTheTablesDensity) {
  for_every_table([this](const OracleTable& oracle) {
    const auto arrays = exported(oracle.bytes(), TableFormat::kPbrt);
    const std::size_t width = oracle.width();
    const std::size_t height = oracle.height();
    EXPECT_EQ(values<float>(arrays, "domain"), (std::vector<float>{0, 0, 1, 1}));
    const auto func = values<float>(arrays, "conditional_func");
    const auto cdf = values<float>(arrays, "conditional_cdf");
    const auto func_int = values<float>(arrays, "conditional_func_int");
    const auto marginal_func = values<float>(arrays, "marginal_func");
    const auto marginal_cdf = values<float>(arrays, "marginal_cdf");
    const auto whole = values<float>(arrays, "marginal_func_int");
    ASSERT_EQ(func.size(), width * height);
    ASSERT_EQ(cdf.size(), (width + 1) * height);
    ASSERT_EQ(marginal_func, func_int);
    ASSERT_EQ(marginal_cdf.size(), height + 1);
    ASSERT_EQ(whole.size(), 1U);
    const PbrtRow marginal{marginal_func.data(), marginal_cdf.data(), height, whole[0]};
    for (std::size_t y = 0; y < height; ++y) {
      const PbrtRow row{&func[y * width], &cdf[y * (width + 1)], width, func_int[y]};
      EXPECT_EQ(row.cdf[0], 0.0F);
      EXPECT_EQ(row.cdf[width], 1.0F);
      EXPECT_TRUE(std::is_sorted(row.cdf, row.cdf + width + 1));
      double integral = 0;
      for (std::size_t x = 0; x < width; ++x) {
        integral += static_cast<double>(row.func[x]) / static_cast<double>(width);
        const double pdf = static_cast<double>(row.func[x]) / static_cast<double>(marginal.func_int);
        expect_near(pdf, probability(oracle, y, x) * static_cast<double>(width * height));
      }
      ASSERT_NEAR(integral, static_cast<double>(row.func_int), 1e-6 * integral);
      // A row, and a column of it, that hold much are found by their middles.
      const float middle = (marginal.cdf[y] + marginal.cdf[y + 1]) / 2;
      if (marginal.cdf[y + 1] - marginal.cdf[y] > 1e-5F) {
        ASSERT_EQ(marginal.find(middle), y);
      }
      for (std::size_t x = 0; x < width && row.func_int > 0; ++x) {
        if (row.cdf[x + 1] - row.cdf[x] > 1e-5F) {
          ASSERT_EQ(row.find((row.cdf[x] + row.cdf[x + 1]) / 2), x);
        }
      }
    }
  });
}

TEST_F(SamplingTableExport, MitsubasArrayHasTheTablesDensity) {
  for_every_table([this](const OracleTable& oracle) {
    const auto pdf = values<float>(exported(oracle.bytes(), TableFormat::kMitsuba), "pdf");
    const std::size_t width = oracle.width();
    ASSERT_EQ(pdf.size(), width * oracle.height());
    for (std::size_t y = 0; y < oracle.height(); ++y) {
      for (std::size_t x = 0; x < width; ++x)
        expect_near(pdf[y * width + x], probability(oracle, y, x) * static_cast<double>(pdf.size()));
    }
  });
}

TEST_F(SamplingTableExport, RefusesWhatIsNoTable) {
  const std::vector<std::uint8_t> bytes(600);
  EXPECT_FALSE(export_table(path_, ArrayView(bytes), TableFormat::kPbrt).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace cumulus::cli
