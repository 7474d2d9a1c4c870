#include "server/runtime/logging.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace cumulus::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Sends the log to a file of its own, and reads it back.
class Logging : public ::testing::Test {
 protected:
  void start(LogLevel level, bool json) { ASSERT_TRUE(start_logging(settings(level, json, path())).ok()); }
  static Configuration::Logging settings(LogLevel level, bool json, const std::string& path) {
    return {level, json, path, std::size_t{1} << 20, absl::Milliseconds(200)};
  }
  std::string path() const { return folder_ / "server.log"; }
  std::vector<std::string> lines() const { return lines_of(path()); }
  static std::vector<std::string> lines_of(const std::string& path) {
    EXPECT_TRUE(flush_log(absl::Seconds(20)));
    std::ifstream file(path);
    std::vector<std::string> result;
    for (std::string line; std::getline(file, line);) result.push_back(line);
    return result;
  }

 private:
  const testing::TemporaryFolder folder_;
};

CallRecord record() {
  CallRecord call{.method = "FilterBox",
                  .request_id = "frame \"7\"\nforged",
                  .client = "ipv4:127.0.0.1:9",
                  .principal = "127.0.0.1"};
  call.bytes = 12;
  call.seconds = 0.5;
  call.compute_seconds = 0.25;
  return call;
}

TEST_F(Logging, ACallerWithANameIsNamed) {
  start(LogLevel::kInfo, false);
  CallRecord call = record();
  call.principal = "render-7";
  log_call(call);
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_THAT(lines()[0], HasSubstr("from ipv4:127.0.0.1:9 as render-7"));
}

TEST_F(Logging, ACallIsOneLineWithWhatMatters) {
  start(LogLevel::kInfo, false);
  log_call(record());
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_THAT(lines()[0], HasSubstr("info FilterBox OK in 500.0 ms, 12 bytes, from ipv4:127.0.0.1:9"));
  EXPECT_THAT(lines()[0], HasSubstr("frame \\\"7\\\"\\u000aforged"));
  EXPECT_THAT(lines()[0], HasSubstr("compute 250.0"));
}

TEST_F(Logging, ACallsTraceIsInItsLine) {
  CallRecord call = record();
  call.trace = parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  start(LogLevel::kInfo, false);
  log_call(call);
  EXPECT_THAT(lines()[0], HasSubstr(", trace 4bf92f3577b34da6a3ce929d0e0e4736 span " + call.trace.span_id));
  start(LogLevel::kInfo, true);
  log_call(call);
  google::protobuf::Struct fields;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(lines().back(), &fields).ok());
  EXPECT_EQ(fields.fields().at("trace_id").string_value(), call.trace.trace_id);
  EXPECT_EQ(fields.fields().at("span_id").string_value(), call.trace.span_id);
  EXPECT_EQ(fields.fields().at("parent_span_id").string_value(), "00f067aa0ba902b7");
  EXPECT_EQ(fields.fields().at("trace_flags").string_value(), "01");
}

TEST_F(Logging, AFaultOfTheServerIsAnErrorAndOneOfTheClientIsNot) {
  start(LogLevel::kError, false);
  CallRecord call = record();
  call.status = absl::InvalidArgumentError("image: is missing");
  log_call(call);
  EXPECT_TRUE(lines().empty());
  call.status = absl::InternalError("illegal address");
  log_call(call);
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_THAT(lines()[0], HasSubstr("error FilterBox INTERNAL"));
  EXPECT_THAT(lines()[0], HasSubstr("illegal address"));
}

TEST_F(Logging, JsonLinesParseWhateverAClientSends) {
  start(LogLevel::kDebug, true);
  log_call(record());
  spdlog::debug("a \"quoted\" word\\");
  spdlog::trace("not at this level");
  ASSERT_EQ(lines().size(), 2u);
  google::protobuf::Struct call;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(lines()[0], &call).ok()) << lines()[0];
  EXPECT_EQ(call.fields().at("method").string_value(), "FilterBox");
  EXPECT_EQ(call.fields().at("request_id").string_value(), "frame \"7\"\nforged");
  EXPECT_EQ(call.fields().at("principal").string_value(), "127.0.0.1");
  EXPECT_EQ(call.fields().at("seconds").number_value(), 0.5);
  EXPECT_EQ(call.fields().at("level").string_value(), "info");
  google::protobuf::Struct text;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(lines()[1], &text).ok()) << lines()[1];
  EXPECT_EQ(text.fields().at("message").string_value(), "a \"quoted\" word\\");
}

TEST_F(Logging, WhatProtobufSaysOfARequestGoesToTheLogAtDebug) {
  start(LogLevel::kInfo, false);
  google::protobuf::Value value;
  EXPECT_FALSE(value.ParseFromString("\x1a\x01\xff"));  // a string that is not UTF-8
  EXPECT_TRUE(lines().empty());
  start(LogLevel::kDebug, false);
  EXPECT_FALSE(value.ParseFromString("\x1a\x01\xff"));
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_THAT(lines()[0], HasSubstr("debug protobuf: "));
}

TEST_F(Logging, AFileThatCannotBeWrittenIsNamed) {
  const absl::Status status = start_logging(settings(LogLevel::kInfo, false, "/dev/null/x.log"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/null/x.log"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("OK")));
}

TEST_F(Logging, AFileThatWasRenamedIsOpenedAnew) {
  start(LogLevel::kInfo, false);
  spdlog::info("before");
  EXPECT_EQ(lines().size(), 1u);
  const std::string old = path() + ".1";
  std::filesystem::rename(path(), old);
  reopen_log();
  spdlog::info("after");
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("the log file was reopened"), HasSubstr("after")));
  EXPECT_THAT(lines_of(old), ElementsAre(HasSubstr("before")));
}

TEST_F(Logging, AFileThatCannotBeOpenedAnewStays) {
  start(LogLevel::kInfo, false);
  const std::string old = path() + ".1";
  std::filesystem::rename(path(), old);
  std::filesystem::create_directory(path());
  reopen_log();
  EXPECT_THAT(lines_of(old), ElementsAre(HasSubstr("cannot reopen the log file '" + path())));
}

TEST_F(Logging, WhatIsDroppedIsSaidInALineOfTheSameForm) {
  Configuration::Logging small = settings(LogLevel::kInfo, true, path());
  small.max_pending_bytes = 4096;
  ASSERT_TRUE(start_logging(small).ok());
  spdlog::info("{}", std::string(5000, 'x'));  // larger than all that may wait
  spdlog::info("short");
  EXPECT_EQ(dropped_log_lines(), 1u);
  ASSERT_EQ(lines().size(), 2u);
  google::protobuf::Struct note;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(lines()[1], &note).ok()) << lines()[1];
  EXPECT_THAT(note.fields().at("message").string_value(), StartsWith("1 log lines were dropped"));
  EXPECT_EQ(note.fields().at("level").string_value(), "warning");
}

}  // namespace
}  // namespace cumulus::server
