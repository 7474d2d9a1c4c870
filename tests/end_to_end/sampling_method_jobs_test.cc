// Tables of every method through the command line, the daemon and a file.
#include <gtest/gtest.h>

#include <string>

#include "cumulus/sampling.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/served_jobs.h"
#include "tests/support/test_data.h"

namespace cumulus::testing {
namespace {

const std::string kMap = test_data("sunrise.exr").string();

class SamplingMethodJobs : public ServedJobs {
 protected:
  static sampling::TableHeader header_of(const std::string& table) {
    sampling::TableHeader header;
    EXPECT_EQ(sampling::parse_header(table.data(), table.size(), table.size(), header),
              sampling::TableError::kNone);
    return header;
  }
};

TEST_F(SamplingMethodJobs, EveryMonotoneMethodDrawsTheSameSamples) {
  succeed({"draw-samples", kMap, "-n", "300", "-o", folder_ / "samples.npy"});
  const std::string expected = read_file(folder_ / "samples.npy");
  for (const char* method : {"radix-forest", "balanced-forest", "cutpoint-binary", "binary-search"}) {
    succeed({"sampling-table", kMap, "-o", folder_ / "map.cst", "--method", method});
    succeed({"draw-samples", folder_ / "map.cst", "-n", "300", "-o", folder_ / "again.npy"});
    EXPECT_TRUE(read_file(folder_ / "again.npy") == expected) << method;
  }
  succeed({"draw-samples", kMap, "-n", "300", "-o", folder_ / "again.npy", "--method", "alias"});
  EXPECT_NE(read_file(folder_ / "again.npy"), expected);
  succeed({"sampling-table", kMap, "-o", folder_ / "map.cst", "--guide-size", "77", "--marginal-guide-size",
           "5"});
  const std::string table = read_file(folder_ / "map.cst");
  EXPECT_EQ(header_of(table).row_guide_size, 77U);
  EXPECT_EQ(header_of(table).marginal_guide_size, 5U);
  fail({"draw-samples", folder_ / "map.cst", "-n", "3", "-o", folder_ / "again.npy", "--layer", "1"},
       "layer");
}

TEST_F(SamplingMethodJobs, ARetiredMethodIsRefusedByName) {
  constexpr int kWrongCommandLine = 2;
  for (const char* method : {"cutpoint-linear", "linear-search", "radix-forest-4", "quaternary-tree"}) {
    fail({"sampling-table", kMap, "-o", folder_ / "map.cst", "--method", method},
         std::string(method) + " is a method no more", kWrongCommandLine);
  }
  const std::string stored = test_data("sampling_tables/version_2_radix_forest_4.cst");
  fail({"draw-samples", stored, "-n", "3", "-o", folder_ / "samples.npy"}, "7 (radix-forest-4)");
}

TEST_F(SamplingMethodJobs, ABilinearTableIsSavedDrawnFromAndEvaluated) {
  succeed({"sampling-table", kMap, "-o", folder_ / "map.cst", "--interpolation", "bilinear"});
  const sampling::TableHeader header = header_of(read_file(folder_ / "map.cst"));
  EXPECT_EQ(header.interpolation, sampling::Interpolation::kBilinear);
  EXPECT_EQ(header.version, 3U);
  succeed({"sampling-table", kMap, "-o", folder_ / "trees.cst", "--interpolation", "bilinear", "--method",
           "radix-forest"});
  EXPECT_EQ(header_of(read_file(folder_ / "trees.cst")).version, 4U);  // as every radix forest's
  succeed({"draw-samples", folder_ / "map.cst", "-n", "300", "-o", folder_ / "samples.npy"});
  succeed({"draw-samples", kMap, "--interpolation", "bilinear", "-n", "300", "-o", folder_ / "again.npy"});
  EXPECT_TRUE(read_file(folder_ / "again.npy") == read_file(folder_ / "samples.npy"));
  fail({"sampling-table", folder_ / "map.cst", "--export", "pbrt", "-o", folder_ / "map.npz"}, "bilinear");
}

}  // namespace
}  // namespace cumulus::testing
