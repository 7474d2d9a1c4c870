#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/end_to_end/program.h"

namespace cumulus::testing {

/// Base of suites that run the command line: one daemon for all tests of a suite, a folder for each test.
class ServedJobs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { daemon_ = new Daemon(); }
  static void TearDownTestSuite() {
    delete daemon_;
    daemon_ = nullptr;
  }

  static Ended run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", daemon_->address()});
    return run_cumulus(arguments);
  }

  static void succeed(const std::vector<std::string>& arguments) {
    const Ended ended = run(arguments);
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    EXPECT_EQ(ended.errors, "");
  }
  /// Expects an exit code, 1 for a job that failed, and one sentence that contains `part`.
  static void fail(const std::vector<std::string>& arguments, const std::string& part, int exit_code = 1) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.output;
    EXPECT_EQ(ended.errors.rfind("cumulus: ", 0), 0U) << ended.errors;
    EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1) << ended.errors;
    EXPECT_NE(ended.errors.find(part), std::string::npos) << ended.errors;
    EXPECT_EQ(ended.output, "");
  }

  inline static Daemon* daemon_ = nullptr;
  TemporaryFolder folder_;
};

}  // namespace cumulus::testing
