// cumulus bench --concurrency, with a server and the bare one that it starts itself.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/end_to_end/program.h"

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
  EXPECT_EQ(rows[0].struct_value().fields().at("callers").number_value(), 1);
  EXPECT_EQ(rows[1].struct_value().fields().at("callers").number_value(), 3);
}

TEST(BenchCalls, PutsWhatOneWaitsForBesideItsLimit) {
  const Daemon daemon;
  const Ended bench = run_cumulus(
      {"--server", daemon.address(), "--json", "bench", "--limits", "--size", "1100", "--repeat", "1"});
  ASSERT_EQ(bench.exit_code, 0) << bench.errors;
  google::protobuf::Struct report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(bench.output, &report).ok()) << bench.output;
  const auto& rows = report.fields().at("rows").list_value().values();
  ASSERT_EQ(rows.size(), 8);
  for (const auto& row : rows) {
    const auto& fields = row.struct_value().fields();
    EXPECT_FALSE(fields.at("limit").string_value().empty());
    const double seconds = fields.at("seconds").number_value();
    const double least = fields.at("limit_seconds").number_value();
    EXPECT_GT(seconds, 0) << fields.at("what").string_value();
    EXPECT_GT(least, 0) << fields.at("what").string_value();
    EXPECT_NEAR(fields.at("times_limit").number_value(), seconds / least, seconds / least * 1e-3);
  }
  EXPECT_EQ(report.fields().at("device").struct_value().fields().at("name").string_value(), "cpu");
  EXPECT_EQ(run_cumulus({"bench", "--limits", "--concurrency", "1"}).exit_code, 2);
}

TEST(BenchCalls, ANumberThatIsNoneIsRefused) {
  EXPECT_EQ(run_cumulus({"bench", "--concurrency", "0"}).exit_code, 2);
  EXPECT_EQ(run_cumulus({"bench", "--concurrency", "1,x"}).exit_code, 2);
}

}  // namespace
}  // namespace cumulus::testing
