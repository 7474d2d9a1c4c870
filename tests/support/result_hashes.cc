// Compares what a program's tests bring back from the backends with what they brought back when
// tests/data/result_hashes/<operation>.<backend>.txt was written: results that are right, but other ones, are
// noticed too. Floats depend on compiler, mathematical library, vectors and GPU, so that a file holds for
// those in its first line alone, and is passed over elsewhere; a test that it does not name is not compared.
//
// CUMULUS_RESULT_HASHES=write writes the files of the backends whose tests run: run the whole program. A
// second run with CUMULUS_RESULT_HASHES=agree says `varies` in place of those that were other ones this time.
#include "tests/support/result_hashes.h"

#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/vector_width.h"
#include "tests/support/test_data.h"

namespace cumulus::testing {

void ResultHashes::add(std::span<const std::byte> array) {
  const auto mix = [this](std::uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
  };
  mix(array.size());
  while (!array.empty()) {
    std::uint64_t word = 0;
    const std::size_t bytes = std::min(array.size(), sizeof(word));
    std::memcpy(&word, array.data(), bytes);
    mix(word);
    array = array.subspan(bytes);
  }
  mix(0);
  constexpr std::string_view kDigits = "0123456789abcdef";
  marks += kDigits[hash >> 60];
  marks += kDigits[hash >> 56 & 15];
}

namespace {

enum class Backend { kCpu, kCuda };

constexpr std::string_view kVaries = "varies";
constexpr std::string_view kHead = "# ";
constexpr std::size_t kMarksInALine = 100;

std::string cpu_vectors() {
  if (has_widest_vectors()) return "avx512";
  return has_wide_vectors() ? "avx2" : "plain";
}

std::string path_of(Backend backend) {
  const std::string name = backend == Backend::kCuda ? "cuda" : "cpu-" + cpu_vectors();
  return test_data("result_hashes/" CUMULUS_TESTED_OPERATION "." + name + ".txt").string();
}

/// What floats depend on.
std::string setting_of(Backend backend) {
  const std::string host =
      std::string("compiler ") + __VERSION__ + ", " CUMULUS_BUILD_TYPE ", glibc " + gnu_get_libc_version();
  if (backend == Backend::kCpu) return host + ", vectors " + cpu_vectors();
  return host + ", nvcc " CUMULUS_NVCC_VERSION ", " + CudaDevice(0).model();
}

/// By the tests' full names. Hashes without arrays: the test's results vary.
struct HashFile {
  std::string setting;
  std::map<std::string, ResultHashes> tests;
};

HashFile read_file(const std::string& path) {
  HashFile file;
  std::ifstream input(path);
  ResultHashes* test = nullptr;
  for (std::string line; std::getline(input, line);) {
    std::istringstream words(line);
    std::string word;
    if (line.starts_with(kHead)) {
      if (file.setting.empty()) file.setting = line.substr(kHead.size());
    } else if (line.starts_with(' ') && test != nullptr && words >> word) {
      test->marks += word;
    } else if (words >> word) {
      test = &file.tests[word];
      if (words >> word && word != kVaries) test->hash = std::stoull(word, nullptr, 16);
    }
  }
  return file;
}

void write_file(const std::string& path, const HashFile& file) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream output(path);
  output << kHead << file.setting << '\n';
  for (const auto& [name, hashes] : file.tests) {
    output << name << ' ';
    if (hashes.arrays() == 0) {
      output << kVaries << '\n';
      continue;
    }
    output << std::hex << hashes.hash << std::dec << '\n';
    for (std::size_t i = 0; i < hashes.marks.size(); i += kMarksInALine)
      output << ' ' << hashes.marks.substr(i, kMarksInALine) << '\n';
  }
  if (!output.flush()) ADD_FAILURE() << "cannot write " << path;
}

/// Follows the tests of this program; the first thread's arrays only.
class Comparison : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo& test) override {
    name_ = std::string(test.test_suite_name()) + "." + test.name();
    found_ = {};
    expected_.reset();
    differs_ = false;
    watching_ = name_.find("Slow") == std::string::npos;
    if (!watching_ || writing()) return;
    const HashFile& file = committed(backend());
    const auto expected = file.tests.find(name_);
    if (expected != file.tests.end() && expected->second.arrays() > 0) expected_ = expected->second;
  }

  void add(std::span<const std::byte> array) {
    if (!watching_ || std::this_thread::get_id() != thread_) return;
    found_.add(array);
    if (!expected_ || differs_) return;
    const std::size_t at = found_.marks.size() - 2;
    differs_ = expected_->marks.compare(at, 2, found_.marks, at, 2) != 0;
    if (differs_) complain("array " + std::to_string(found_.arrays()) + " that the test brings back");
  }

  void OnTestEnd(const ::testing::TestInfo& test) override {
    watching_ = false;
    if (test.result()->Failed() || test.result()->Skipped() || found_.arrays() == 0) return;
    if (writing()) written_[backend()][name_] = found_;
    if (expected_ && found_ != *expected_) complain("what the test brings back as a whole");
  }

  void OnTestProgramEnd(const ::testing::UnitTest& /*program*/) override {
    for (const auto& [backend, tests] : written_) {
      HashFile file{setting_of(backend), tests};
      if (mode() == "agree") file.tests = agreeing(read_file(path_of(backend)).tests, tests);
      write_file(path_of(backend), file);
    }
  }

 private:
  using Tests = std::map<std::string, ResultHashes>;

  static std::string_view mode() {
    const char* mode = std::getenv("CUMULUS_RESULT_HASHES");
    return mode != nullptr ? mode : "";
  }
  static bool writing() { return mode() == "write" || mode() == "agree"; }

  Backend backend() const { return name_.find("Cuda") != std::string::npos ? Backend::kCuda : Backend::kCpu; }

  /// Empty where there is no file, or one of another setting.
  const HashFile& committed(Backend backend) {
    const auto [place, is_new] = committed_.try_emplace(backend);
    if (is_new && (backend == Backend::kCpu || cuda_device_count() > 0)) {
      place->second = read_file(path_of(backend));
      if (place->second.setting != setting_of(backend)) place->second = {};
    }
    return place->second;
  }

  static Tests agreeing(Tests before, const Tests& now) {
    for (auto& [name, hashes] : before) {
      const auto again = now.find(name);
      if (again != now.end() && again->second != hashes) hashes = {};
    }
    return before;
  }

  void complain(const std::string& what) const {
    ADD_FAILURE() << what << " differs from " << path_of(backend())
                  << ". Where that is meant, write the file again: see tests/support/result_hashes.cc";
  }

  std::string name_;
  ResultHashes found_;
  std::optional<ResultHashes> expected_;
  bool watching_ = false;
  bool differs_ = false;
  std::thread::id thread_ = std::this_thread::get_id();
  std::map<Backend, HashFile> committed_;
  std::map<Backend, Tests> written_;
};

Comparison* const kComparison = [] {
  auto* comparison = new Comparison;  // GoogleTest owns it
  ::testing::UnitTest::GetInstance()->listeners().Append(comparison);
  result_observer = [](std::span<const std::byte> array) { kComparison->add(array); };
  return comparison;
}();

/// A test that was renamed takes its line in the file along, or would not be compared any more.
TEST(ResultHashes, NameTestsThatExist) {
  std::set<std::string> names;
  const ::testing::UnitTest& program = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j)
      names.insert(std::string(suite.name()) + "." + suite.GetTestInfo(j)->name());
  }
  for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
    if (backend == Backend::kCuda && !CUMULUS_WITH_CUDA) continue;  // some of its tests are left out there
    for (const auto& [name, hashes] : read_file(path_of(backend)).tests)
      EXPECT_TRUE(names.contains(name)) << path_of(backend) << " names " << name << ", which is no test here";
  }
}

TEST(ResultHashes, HoldForThisSetting) {
  const std::string setting = read_file(path_of(Backend::kCpu)).setting;
  if (setting != setting_of(Backend::kCpu))
    GTEST_SKIP() << "results are not compared: hashes are of \"" << setting << "\", this is \""
                 << setting_of(Backend::kCpu) << '"';
}

TEST(ResultHashes, HoldForThisSettingOnCuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  const std::string setting = read_file(path_of(Backend::kCuda)).setting;
  if (setting != setting_of(Backend::kCuda))
    GTEST_SKIP() << "results are not compared: hashes are of \"" << setting << "\", this is \""
                 << setting_of(Backend::kCuda) << '"';
}

TEST(ResultHashes, DifferByABitByLengthAndByOrder) {
  const auto of = [](const std::vector<std::vector<unsigned char>>& arrays) {
    ResultHashes hashes;
    for (const auto& array : arrays) hashes.add(std::as_bytes(std::span(array)));
    return hashes;
  };
  const auto right = of({{1, 2, 3, 4, 5, 6, 7, 8, 9}, {7}});
  EXPECT_EQ(right.arrays(), 2);
  EXPECT_EQ(right, of({{1, 2, 3, 4, 5, 6, 7, 8, 9}, {7}}));
  EXPECT_NE(right, of({{1, 2, 3, 4, 5, 6, 7, 8, 8}, {7}}));
  EXPECT_NE(right, of({{0, 2, 3, 4, 5, 6, 7, 8, 9}, {7}}));
  EXPECT_NE(right, of({{1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, {7}}));
  EXPECT_NE(right, of({{7}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}));
  EXPECT_NE(right.marks.substr(0, 2), of({{1, 2, 3, 4, 5, 6, 7, 8, 8}}).marks);
}

}  // namespace
}  // namespace cumulus::testing
