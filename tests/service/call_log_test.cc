// What a call's line in the log has.
#include <absl/time/time.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "server/runtime/logging.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {
namespace {

/// The number that follows `name` in a line of JSON; -1 where it does not come.
double number_after(const std::string& line, const std::string& name) {
  const std::size_t place = line.find("\"" + name + "\":");
  return place != std::string::npos ? std::stod(line.substr(place + name.size() + 3)) : -1;
}

TEST(CallLog, HasWhatInputAndOutputTook) {
  const TemporaryFolder folder;
  server::Configuration::Logging logging = server::default_configuration().logging;
  logging.json = true;
  logging.file = folder / "calls.log";
  ASSERT_TRUE(server::start_logging(logging).ok());
  TestServer server;
  v1::FilterBoxRequest request;
  set_inline(*request.mutable_image(), v1::FLOAT32, {400, 400}, std::vector<float>(400 * 400, 1.0F));
  grpc::ClientContext context;
  v1::OperationResult result;
  ASSERT_TRUE(server.operations->FilterBox(&context, request, &result).ok());
  std::string call;
  ASSERT_TRUE(eventually([&] {
    server::flush_log(absl::Seconds(1));
    std::ifstream lines(logging.file);
    while (std::getline(lines, call)) {
      if (call.find("FilterBox") != std::string::npos) return true;
    }
    return false;
  }));
  EXPECT_GT(number_after(call, "input_seconds"), 0) << call;
  EXPECT_GT(number_after(call, "output_seconds"), 0) << call;
  EXPECT_GT(number_after(call, "compute_seconds"), 0) << call;
  EXPECT_NE(call.find("\"principal\":\"local\""), std::string::npos) << call;
  server::Configuration::Logging quiet = server::default_configuration().logging;
  ASSERT_TRUE(server::start_logging(quiet).ok()) << "the file goes";
}

}  // namespace
}  // namespace cumulus::testing
