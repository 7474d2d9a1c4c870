// Whole jobs on a GPU: the real command line with a private daemon on the CUDA backend. Maps come as .npy
// files, so that this runs where OpenImageIO is missing too; the answers are held against oracles.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "cumulus/sampling.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/end_to_end/json.h"
#include "tests/end_to_end/program.h"

namespace cumulus::testing {
namespace {

constexpr std::int64_t kHeight = 96;
constexpr std::int64_t kWidth = 160;

class GpuJobsCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    const Ended health = run_cumulus({"--backend", "cuda", "health"});
    if (health.errors.find("there is no GPU") != std::string::npos)
      GTEST_SKIP() << "no GPU here: " << health.errors;
    ASSERT_EQ(health.exit_code, 0) << health.errors;
  }

  std::string write_npy(const std::string& name, const std::vector<float>& values, int channels) const {
    std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(kHeight) +
                             ", " + std::to_string(kWidth) + ", " + std::to_string(channels) + "), }\n";
    dictionary.insert(dictionary.end() - 1, 128 - 10 - dictionary.size(), ' ');
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(dictionary.size());
    bytes += '\0';
    std::ofstream file(folder_ / name, std::ios::binary);
    file << bytes << dictionary;
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
    return folder_ / name;
  }

  /// Runs the command, which succeeds on a GPU, and gives its JSON.
  static std::string run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--backend", "cuda", "--json"});
    const Ended ended = run_cumulus(arguments);
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    EXPECT_EQ(Json(ended.output).text("device.backend"), "cuda") << ended.output;
    return ended.output;
  }

  /// The elements after a .npy file's header of 64 or 128 bytes.
  template <class T>
  std::vector<T> read_npy(const std::string& path, std::size_t count) const {
    const std::string bytes = read_file(path);
    std::vector<T> values(count);
    EXPECT_GE(bytes.size(), count * sizeof(T));
    if (bytes.size() >= count * sizeof(T)) {
      std::memcpy(values.data(), bytes.data() + bytes.size() - count * sizeof(T), count * sizeof(T));
    }
    return values;
  }

  TemporaryFolder folder_;
};

TEST_F(GpuJobsCuda, BuildATableWithTheOraclesBytesAndDrawFromIt) {
  const auto map = make_map<float>({kHeight, kWidth}, 3, 0, MapPattern::kSun);
  const std::string input = write_npy("map.npy", map.elements, 3);
  run({"sampling-table", input, "-o", folder_ / "table.cst"});
  std::string table = read_file(folder_ / "table.cst");
  const OracleTable oracle = oracle_table(map, true);
  ASSERT_EQ(table.size(), oracle.bytes().size());
  std::memset(table.data() + offsetof(sampling::TableHeader, crc32c), 0, sizeof(std::uint32_t));
  EXPECT_EQ(verify_sampling_table(oracle, reinterpret_cast<const unsigned char*>(table.data())), "");

  run({"draw-samples", folder_ / "table.cst", "-n", "4096", "-o", folder_ / "samples.npy"});
  constexpr std::size_t kFloatsPerSample = 6;  // u, v, direction, pdf
  const auto samples = read_npy<float>(folder_ / "samples.npy", 4096 * kFloatsPerSample);
  int on_the_sun = 0;
  for (std::size_t i = 0; i < 4096; ++i) {
    const float u = samples[i * kFloatsPerSample];
    const float v = samples[i * kFloatsPerSample + 1];
    on_the_sun += static_cast<std::int64_t>(u * kWidth) == 2 * kWidth / 3 &&
                  static_cast<std::int64_t>(v * kHeight) == kHeight / 3;
    ASSERT_GT(samples[i * kFloatsPerSample + 5], 0.0F);
  }
  EXPECT_GT(on_the_sun, 4000) << "a texel a million times brighter than 15359 others of about one half";
}

TEST_F(GpuJobsCuda, SumAnImageExactly) {
  std::vector<float> values(kHeight * kWidth);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
  const std::string input = write_npy("image.npy", values, 1);
  run({"summed-area-table", input, "-o", folder_ / "sums.npy"});
  const auto sums = read_npy<double>(folder_ / "sums.npy", values.size());
  std::vector<double> column(kWidth, 0.0);
  for (std::int64_t y = 0; y < kHeight; ++y) {
    double row = 0;  // whole numbers below 2^53: exact in any order
    for (std::int64_t x = 0; x < kWidth; ++x) {
      const auto i = static_cast<std::size_t>(y * kWidth + x);
      row += values[i];
      column[static_cast<std::size_t>(x)] += row;
      ASSERT_EQ(sums[i], column[static_cast<std::size_t>(x)]) << "row " << y << ", column " << x;
    }
  }
}

}  // namespace
}  // namespace cumulus::testing
