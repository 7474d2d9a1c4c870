#include "server/runtime/trace.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace cumulus::server {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "00f067aa0ba902b7";

TEST(Trace, IsReadAndGoesOnWithASpanOfItsOwn) {
  const TraceContext trace = parse_traceparent("00-" + kTrace + "-" + kParent + "-01");
  EXPECT_EQ(trace.trace_id, kTrace);
  EXPECT_EQ(trace.parent_id, kParent);
  EXPECT_EQ(trace.flags, "01");
  EXPECT_EQ(trace.span_id.size(), 16U);
  EXPECT_EQ(trace.header(), "00-" + kTrace + "-" + trace.span_id + "-01");
  EXPECT_FALSE(parse_traceparent(trace.header()).empty());
}

TEST(Trace, SpansDiffer) {
  std::set<std::string> spans;
  for (int i = 0; i < 1000; ++i)
    spans.insert(parse_traceparent("00-" + kTrace + "-" + kParent + "-00").span_id);
  EXPECT_EQ(spans.size(), 1000U);
}

TEST(Trace, OfALaterVersionMayHaveMore) {
  EXPECT_FALSE(parse_traceparent("01-" + kTrace + "-" + kParent + "-01-more").empty());
  EXPECT_FALSE(parse_traceparent("cc-" + kTrace + "-" + kParent + "-01").empty());
  EXPECT_TRUE(parse_traceparent("01-" + kTrace + "-" + kParent + "-01more").empty());
}

TEST(Trace, HostileHeadersAreNone) {
  const std::string zeros(32, '0');
  std::string upper = kTrace;
  upper[1] = 'B';
  std::string broken = kTrace;
  broken[5] = '"';
  std::string line = kTrace;
  line[7] = '\n';
  std::string zero = kTrace;
  zero[9] = '\0';
  const std::vector<std::string> headers = {
      "",
      "00",
      "00-" + kTrace + "-" + kParent,
      "00-" + kTrace + "-" + kParent + "-1",
      "00-" + kTrace + "-" + kParent + "-01-",
      "00-" + kTrace + "-" + kParent + "-01 ",
      "00-" + kTrace + "-" + kParent + "-011",
      "0-" + kTrace + "-" + kParent + "-001",
      "ff-" + kTrace + "-" + kParent + "-01",
      "0x-" + kTrace + "-" + kParent + "-01",
      "00_" + kTrace + "-" + kParent + "-01",
      "00-" + kTrace + "_" + kParent + "-01",
      "00-" + kTrace + "-" + kParent + "_01",
      "00-" + zeros + "-" + kParent + "-01",
      "00-" + kTrace + "-" + zeros.substr(0, 16) + "-01",
      "00-" + upper + "-" + kParent + "-01",
      "00-" + broken + "-" + kParent + "-01",
      "00-" + line + "-" + kParent + "-01",
      "00-" + zero + "-" + kParent + "-01",
      std::string(55, '-'),
      std::string(100000, 'a'),
      std::string(55, '\xff'),
  };
  for (const std::string& header : headers)
    EXPECT_TRUE(parse_traceparent(header).empty()) << header.substr(0, 80);
}

}  // namespace
}  // namespace cumulus::server
