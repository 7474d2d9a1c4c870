// cumulus bench --concurrency, with a server and the bare one that it starts itself.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "tests/end_to_end/program.h"
#include "tests/support/tries.h"

namespace cumulus::testing {
namespace {

TEST(BenchCalls, ComparesEachNumberOfCallersWithABareServer) {
  const Daemon daemon;
  const Ended bench =
      run_cumulus({"--server", daemon.address(), "--json", "bench", "--concurrency", "1,3", "--rounds", "1"});
  ASSERT_EQ(bench.exit_code, 0) << bench.errors;
  google::protobuf::Struct report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(bench.output, &report).ok()) << bench.output;
  const auto& rows = report.fields().at("calls").list_value().values();
  ASSERT_EQ(rows.size(), 2);
  for (const auto& row : rows) {
    const auto& fields = row.struct_value().fields();
    for (const char* name : {"p50_seconds", "p99_seconds", "requests_per_second", "bare_p50_seconds",
                             "bare_p99_seconds", "bare_requests_per_second", "p99_ratio", "requests_ratio"})
      EXPECT_GT(fields.at(name).number_value(), 0) << name;
    EXPECT_LE(fields.at("p50_seconds").number_value(), fields.at("p99_seconds").number_value());
    EXPECT_NEAR(fields.at("added_p50_seconds").number_value(),
                fields.at("p50_seconds").number_value() - fields.at("bare_p50_seconds").number_value(), 1e-6);
  }
  const auto& alone = rows[0].struct_value().fields();
  EXPECT_EQ(alone.at("callers").number_value(), 1);
  EXPECT_NEAR(alone.at("added_to_paced_p50_seconds").number_value(),
              alone.at("p50_seconds").number_value() - alone.at("paced_bare_p50_seconds").number_value(),
              1e-6);
  EXPECT_FALSE(rows[1].struct_value().fields().contains("paced_bare_p50_seconds"));
  EXPECT_EQ(rows[1].struct_value().fields().at("callers").number_value(), 3);
}

/// How often gRPC's executor has woken in a process: each time, a call went on on another thread.
long executor_wakes(pid_t process) {
  long wakes = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    if (!read_file(thread.path() / "comm").starts_with("default-execut")) continue;
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);) {
      const std::string name = "voluntary_ctxt_switches:";
      if (line.starts_with(name)) wakes += std::stol(line.substr(name.size()));
    }
  }
  return wakes;
}

// gRPC hands a call's end to a thread of its executor, unless it is told that it need not.
TEST(BenchCalls, ACallOfTheDaemonEndsWithoutAnotherThread) {
  Daemon daemon;
  const auto stub =
      v1::Operations::NewStub(grpc::CreateChannel(daemon.address(), grpc::InsecureChannelCredentials()));
  v1::FilterBoxRequest request;
  v1::InlineArray& image = *request.mutable_image()->mutable_inline_array();
  image.mutable_spec()->set_element_type(v1::FLOAT32);
  for (int i = 0; i < 2; ++i) image.mutable_spec()->add_shape(4);
  image.set_data(std::string(16 * sizeof(float), '\0'));
  const auto call = [&] {
    grpc::ClientContext context;
    v1::OperationResult result;
    EXPECT_TRUE(stub->FilterBox(&context, request, &result).ok());
  };
  call();
  EXPECT_TRUE(testing::once_in_three([&] {
    const long before = executor_wakes(daemon.program().id());
    constexpr int kCalls = 400;
    for (int i = 0; i < kCalls; ++i) call();
    return executor_wakes(daemon.program().id()) - before < kCalls / 4;
  }));
}

TEST(BenchCalls, PutsWhatOneWaitsForBesideItsLimit) {
  const Daemon daemon;
  const Ended bench = run_cumulus(
      {"--server", daemon.address(), "--json", "bench", "--limits", "--size", "1100", "--repeat", "1"});
  ASSERT_EQ(bench.exit_code, 0) << bench.errors;
  google::protobuf::Struct report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(bench.output, &report).ok()) << bench.output;
  const auto& rows = report.fields().at("rows").list_value().values();
  std::vector<std::string> whats;
  for (const auto& row : rows) {
    const auto& fields = row.struct_value().fields();
    whats.push_back(fields.at("what").string_value());
    EXPECT_FALSE(fields.at("limit").string_value().empty());
    const double seconds = fields.at("seconds").number_value();
    const double least = fields.at("limit_seconds").number_value();
    EXPECT_GT(seconds, 0) << fields.at("what").string_value();
    EXPECT_GT(least, 0) << fields.at("what").string_value();
    EXPECT_NEAR(fields.at("added_seconds").number_value(), seconds - least, seconds * 1e-3);
    EXPECT_NEAR(fields.at("times_limit").number_value(), seconds / least, seconds / least * 1e-3);
  }
  EXPECT_EQ(whats, (std::vector<std::string>{
                       "upload 4 MiB", "download 4 MiB", "upload 4 MiB, one connection",
                       "download 4 MiB, one connection", "upload 4 MiB, four connections",
                       "download 4 MiB, four connections", "upload a shared array of 4 MiB",
                       "download 4 MiB into a shared array", "a small call, median",
                       "a small call, median, as often", "a small call among those of 64 callers, one a turn",
                       "a small operation besides its kernels, the operations' median",
                       "a table of 64 x 64 among those of 64 callers, one a turn",
                       "a small call beside a download, p99", "five small operations, one call",
                       "the same, five calls", "files and transfers of a blur, 4 MiB to a new file",
                       "files and transfers of a blur, 4 MiB to a file that is there",
                       "a private daemon starts, answers and ends"}));
  EXPECT_EQ(report.fields().at("device").struct_value().fields().at("name").string_value(), "cpu");
  EXPECT_EQ(run_cumulus({"bench", "--limits", "--concurrency", "1"}).exit_code, 2);
}

TEST(BenchCalls, HasNoRowsOfSharedMemoryWhereThereIsNone) {
  const Daemon daemon({"--shared-memory-socket", "off"});
  const Ended bench = run_cumulus(
      {"--server", daemon.address(), "--json", "bench", "--limits", "--size", "64", "--repeat", "1"});
  ASSERT_EQ(bench.exit_code, 0) << bench.errors;
  EXPECT_EQ(bench.output.find("shared array"), std::string::npos) << bench.output;
  EXPECT_NE(bench.output.find("four connections"), std::string::npos) << bench.output;
}

TEST(BenchCalls, ANumberThatIsNoneIsRefused) {
  EXPECT_EQ(run_cumulus({"bench", "--concurrency", "0"}).exit_code, 2);
  EXPECT_EQ(run_cumulus({"bench", "--concurrency", "1,x"}).exit_code, 2);
}

}  // namespace
}  // namespace cumulus::testing
