#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/batch/record.h"
#include "tests/support/temporary_folder.h"

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

class BatchRecordTest : public ::testing::Test {
 protected:
  BatchRecordTest() {
    for (const char* name : {"in", "out"}) std::ofstream(folder_ / name) << name;
    job_.text = "blur in -o out";
    job_.inputs = {folder_ / "in"};
    job_.outputs = {folder_ / "out"};
    fs::last_write_time(folder_ / "in", fs::last_write_time(folder_ / "out") - std::chrono::seconds(10));
  }
  bool held_anew() const {
    BatchRecord record(path_);
    record.read();
    return record.holds(job_);
  }

  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "record";
  ManifestJob job_;
};

TEST_F(BatchRecordTest, HasAJobAsSoonAsItIsDone) {
  BatchRecord record(path_);
  ASSERT_TRUE(record.open(true).ok());
  ASSERT_TRUE(record.add(job_).ok());
  // While the batch goes on: what kills it now must not cost the job.
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "blur in -o out\n");
  EXPECT_TRUE(held_anew());
}

TEST_F(BatchRecordTest, HoldsWhatWasDoneAndHasNotChanged) {
  EXPECT_FALSE(held_anew()) << "it was not done";
  std::ofstream(path_) << job_.text << '\n';
  EXPECT_TRUE(held_anew());
  fs::last_write_time(folder_ / "in", fs::last_write_time(folder_ / "out") + std::chrono::seconds(10));
  EXPECT_FALSE(held_anew()) << "its input is newer than its output";
}

}  // namespace
}  // namespace cumulus::cli
