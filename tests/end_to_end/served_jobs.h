#pragma once

#include <gtest/gtest.h>

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

  inline static Daemon* daemon_ = nullptr;
  TemporaryFolder folder_;
};

}  // namespace cumulus::testing
