#include "cli/job/report.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "cli/app/failure.h"

namespace cumulus::cli {
namespace {

TEST(Report, NumbersKeepAllTheirDigits) {
  Report report;
  report.add("third", 1.0 / 3);
  report.add("large", 123456789.25);
  report.add("tiny", 5e-324);
  report.add("none", std::numeric_limits<double>::infinity());
  report.add("bytes", std::int64_t{9007199254740993});
  EXPECT_EQ(report.to_json(),
            "{\"third\":0.3333333333333333,\"large\":123456789.25,\"tiny\":5e-324,\"none\":null,"
            "\"bytes\":9007199254740993}");
}

TEST(Report, TextIsAlwaysUtf8) {
  EXPECT_EQ(quoted_in_json("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x85"),
            "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x85\"");
  EXPECT_EQ(quoted_in_json("caf\xe9.exr"), "\"caf\\uFFFD.exr\"");
  EXPECT_EQ(quoted_in_json("\xc0\xaf"), "\"\\uFFFD\\uFFFD\"") << "a longer form of a slash";
  EXPECT_EQ(quoted_in_json("\xed\xa0\x80"), "\"\\uFFFD\\uFFFD\\uFFFD\"") << "half of a pair";
  EXPECT_EQ(quoted_in_json("\xe2\x82"), "\"\\uFFFD\\uFFFD\"") << "cut short";
  EXPECT_EQ(quoted_in_json("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
}

TEST(Failure, NamesTheFieldThatItIsAbout) {
  EXPECT_EQ(field_of("--sigma: is nan; a number, 0.5 to 10000, is right"), "--sigma");
  EXPECT_EQ(field_of("-d: is uint8, which files such as a.exr do not hold"), "-d");
  EXPECT_EQ(field_of("--output is required"), "--output");
  EXPECT_EQ(field_of("cannot read a b.exr as an image: it is empty; give one"), "a b.exr");
  EXPECT_EQ(field_of("there is no file a.exr; give an image file that exists"), "a.exr");
  EXPECT_EQ(field_of("a.exr: row 4, column 7, channel G is nan; numbers are right"), "a.exr");
  EXPECT_EQ(field_of("the server ended: run the command again"), "");
  EXPECT_EQ(describe_failure(absl::StatusCode::kNotFound, 1, "there is no file a; give one").to_json(),
            "{\"code\":\"NOT_FOUND\",\"exit_code\":1,\"field\":\"a\",\"message\":\"there is no file a; give "
            "one\"}");
}

}  // namespace
}  // namespace cumulus::cli
