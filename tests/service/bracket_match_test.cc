#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/cases/bracket_match_case.h"
#include "tests/cases/bracket_match_check.h"
#include "tests/cases/bracket_match_clips_case.h"
#include "tests/support/test_server.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::TestServer;
using testing::values_of;

class BracketMatchService : public ::testing::Test {
 protected:
  grpc::Status match(const v1::MatchBracketsRequest& request) {
    grpc::ClientContext context;
    return server_.operations->MatchBrackets(&context, request, &result_);
  }
  static v1::MatchBracketsRequest text(const std::string& text) {
    v1::MatchBracketsRequest request;
    testing::set_inline<std::uint8_t>(*request.mutable_text(), v1::UINT8,
                                      {static_cast<std::int64_t>(text.size())}, {text.begin(), text.end()});
    return request;
  }
  static v1::MatchBracketsRequest tokens(const std::vector<std::int32_t>& tokens) {
    v1::MatchBracketsRequest request;
    testing::set_inline<std::int32_t>(*request.mutable_text(), v1::INT32,
                                      {static_cast<std::int64_t>(tokens.size())}, tokens);
    return request;
  }
  template <class T>
  std::vector<T> output(const std::string& name) {
    const v1::NamedArray* array = testing::find_array(result_, name);
    EXPECT_NE(array, nullptr) << name;
    return array != nullptr ? values_of<T>(array->inline_array()) : std::vector<T>();
  }
  void expect_unbalanced(const v1::MatchBracketsRequest& request, const std::string& what,
                         const std::map<std::string, std::string>& facts) {
    const grpc::Status status = match(request);
    testing::expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "UNBALANCED_BRACKETS");
    EXPECT_NE(status.error_message().find(what), std::string::npos) << status.error_message();
    const auto info = testing::detail_of<google::rpc::ErrorInfo>(status);
    EXPECT_EQ((std::map<std::string, std::string>(info.metadata().begin(), info.metadata().end())), facts);
  }

  TestServer server_;
  v1::OperationResult result_;
};

TEST_F(BracketMatchService, GivesPartnersUnlessToldOtherwise) {
  const grpc::Status status = match(text("a(b[]{c})"));
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(result_.arrays_size(), 1);
  EXPECT_EQ(output<std::int32_t>("partner"), (std::vector<std::int32_t>{-1, 8, -1, 4, 3, 7, -1, 5, 1}));
  EXPECT_EQ(result_.timings().device(), "cpu");
}

TEST_F(BracketMatchService, GivesEveryOutputInTheOrderAsked) {
  auto request = text("(())");
  for (const auto asked : {v1::MAXIMUM_DEPTH, v1::STACK_TOP, v1::DEPTH, v1::PARENT, v1::PARTNER})
    request.add_outputs(asked);
  request.set_lenient(true);
  request.set_index_type(v1::INT64);
  ASSERT_TRUE(match(request).ok());
  ASSERT_EQ(result_.arrays_size(), 6);
  EXPECT_EQ(result_.arrays(1).name(), "stack_top");
  EXPECT_EQ(output<std::int64_t>("maximum_depth"), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(output<std::int64_t>("stack_top"), (std::vector<std::int64_t>{0, 1, 0, -1}));
  EXPECT_EQ(output<std::int64_t>("depth"), (std::vector<std::int64_t>{0, 1, 1, 0}));
  EXPECT_EQ(output<std::int64_t>("parent"), (std::vector<std::int64_t>{-1, 0, 0, -1}));
  EXPECT_EQ(output<std::int64_t>("partner"), (std::vector<std::int64_t>{3, 2, 1, 0}));
  EXPECT_EQ(output<std::int64_t>("unmatched"), (std::vector<std::int64_t>{0}));
}

TEST_F(BracketMatchService, TakesOtherPairsAndTokens) {
  auto request = text("<(>");
  request.set_pairs("<>");
  ASSERT_TRUE(match(request).ok());
  EXPECT_EQ(output<std::int32_t>("partner"), (std::vector<std::int32_t>{2, -1, 0}));
  ASSERT_TRUE(match(tokens({9, 0, -9})).ok());
  EXPECT_EQ(output<std::int32_t>("partner"), (std::vector<std::int32_t>{2, -1, 0}));
}

TEST_F(BracketMatchService, TakesAnEmptyText) {
  const grpc::Status status = match(text(""));
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(output<std::int32_t>("partner").empty());
}

TEST_F(BracketMatchService, SaysWhereUnbalancedInputGoesWrongAndWhatIsRight) {
  expect_unbalanced(text("{[}]"), "element 2 is '}' where ']' is right, to close what element 1 opens",
                    {{"position", "2"}, {"found", "125"}, {"expected", "93"}, {"open_position", "1"}});
  expect_unbalanced(text("())("), "element 2 is ')', which closes nothing",
                    {{"position", "2"}, {"found", "41"}});
  expect_unbalanced(text("([]"), "ends after 3 elements where ')' is right, to close what element 0 opens",
                    {{"position", "3"}, {"expected", "41"}, {"open_position", "0"}});
  expect_unbalanced(tokens({7, -8}), "element 1 is token -8 where token -7 is right",
                    {{"position", "1"}, {"found", "-8"}, {"expected", "-7"}, {"open_position", "0"}});
}

TEST_F(BracketMatchService, MatchesTheRestWhereLenient) {
  auto request = text("{[}]()");
  request.set_lenient(true);
  ASSERT_TRUE(match(request).ok());
  EXPECT_EQ(output<std::int32_t>("partner"), (std::vector<std::int32_t>{-1, -1, -1, -1, 5, 4}));
  EXPECT_EQ(output<std::int64_t>("unmatched"), (std::vector<std::int64_t>{4}));
}

TEST_F(BracketMatchService, MatchesTheOracle) {
  for (const testing::BracketPattern pattern : testing::kBracketPatterns) {
    const std::string brackets = testing::make_brackets(pattern, 50000);
    auto request = text(brackets);
    request.set_lenient(true);
    ASSERT_TRUE(match(request).ok());
    EXPECT_EQ(testing::verify_bracket_output("partner", testing::naive_bracket_match(brackets).partner,
                                             output<std::int32_t>("partner")),
              "");
  }
}

TEST_F(BracketMatchService, RefusesInputsThatAreNoText) {
  v1::MatchBracketsRequest request;
  expect_bad_field(match(request), "text", "is missing");
  testing::set_inline<float>(*request.mutable_text(), v1::FLOAT32, {1}, {1});
  expect_bad_field(match(request), "text", "is FLOAT32 [1]; UINT8 [n], a text, or INT32 [n]");
  testing::set_inline<std::uint8_t>(*request.mutable_text(), v1::UINT8, {1, 1}, {40});
  expect_bad_field(match(request), "text", "is UINT8 [1, 1]");
}

TEST_F(BracketMatchService, RefusesPairsThatAreNone) {
  auto request = text("()");
  request.set_pairs("(");
  expect_bad_field(match(request), "pairs", "1 bytes; opens and closes in turn");
  request.set_pairs("((");
  expect_bad_field(match(request), "pairs", "byte 40 twice");
  request = tokens({1, -1});
  request.set_pairs("()");
  expect_bad_field(match(request), "pairs", "is for texts of bytes");
}

TEST_F(BracketMatchService, RefusesOutputsThatItDoesNotHave) {
  auto request = text("()");
  request.add_outputs(v1::PARTNER);
  request.add_outputs(v1::PARTNER);
  expect_bad_field(match(request), "outputs[1]", "PARTNER again");
  request.set_outputs(1, v1::BRACKET_OUTPUT_UNSPECIFIED);
  expect_bad_field(match(request), "outputs[1]", "is 0; PARTNER, PARENT");
  request.set_outputs(1, static_cast<v1::BracketOutput>(6));
  expect_bad_field(match(request), "outputs[1]", "is 6");
}

TEST_F(BracketMatchService, RefusesIndicesOfOtherTypes) {
  auto request = text("()");
  request.set_index_type(v1::UINT32);
  expect_bad_field(match(request), "index_type", "is UINT32; INT32 or INT64 is right");
  request.set_index_type(static_cast<v1::ElementType>(77));
  expect_bad_field(match(request), "index_type", "is 77");
}

TEST_F(BracketMatchService, MatchesEachDocumentOnItsOwn) {
  auto request = text("()(]");
  testing::set_inline<std::int64_t>(*request.mutable_segments(), v1::INT64, {3}, {0, 2, 3});
  expect_unbalanced(request,
                    "a document ends after 3 elements where ')' is right, to close what element 2 opens",
                    {{"position", "3"}, {"expected", "41"}, {"open_position", "2"}, {"segment", "1"}});
  request.set_lenient(true);
  ASSERT_TRUE(match(request).ok());
  EXPECT_EQ(output<std::int32_t>("partner"), (std::vector<std::int32_t>{1, 0, -1, -1}));
  EXPECT_EQ(output<std::int64_t>("unmatched"), (std::vector<std::int64_t>{2}));
}

TEST_F(BracketMatchService, RefusesWrongSegments) {
  auto request = text("()");
  testing::set_inline<std::int32_t>(*request.mutable_segments(), v1::INT32, {1}, {0});
  expect_bad_field(match(request), "segments", "is INT32 [1]; INT64 [documents]");
  testing::set_inline<std::int64_t>(*request.mutable_segments(), v1::INT64, {0}, {});
  expect_bad_field(match(request), "segments", "is INT64 [0]");
  testing::set_inline<std::int64_t>(*request.mutable_segments(), v1::INT64, {3}, {0, 2, 1});
  for (const bool lenient : {false, true}) {
    request.set_lenient(lenient);
    const grpc::Status status = match(request);
    testing::expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "WRONG_SEGMENTS");
    EXPECT_NE(status.error_message().find("segments: element 2 is wrong"), std::string::npos);
  }
}

class IntersectClipsService : public ::testing::Test {
 protected:
  grpc::Status intersect(const v1::IntersectClipsRequest& request) {
    grpc::ClientContext context;
    return server_.operations->IntersectClips(&context, request, &result_);
  }
  static v1::IntersectClipsRequest scene(const testing::ClipScene& scene) {
    v1::IntersectClipsRequest request;
    const auto count = static_cast<std::int64_t>(scene.elements.size());
    testing::set_inline<std::uint8_t>(*request.mutable_elements(), v1::UINT8, {count}, scene.elements);
    testing::set_inline<float>(*request.mutable_boxes(), v1::FLOAT32, {count, 4}, scene.boxes);
    return request;
  }
  void expect_refused(const testing::ClipScene& refused, const std::string& reason, const std::string& what) {
    const grpc::Status status = intersect(scene(refused));
    testing::expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, reason);
    EXPECT_NE(status.error_message().find(what), std::string::npos) << status.error_message();
  }

  TestServer server_;
  v1::OperationResult result_;
};

TEST_F(IntersectClipsService, MatchesTheOracle) {
  for (const testing::ScenePattern pattern : testing::kScenePatterns) {
    const testing::ClipScene drawn = testing::make_scene(pattern, 20000);
    const grpc::Status status = intersect(scene(drawn));
    ASSERT_TRUE(status.ok()) << status.error_message();
    const v1::NamedArray* bounds = testing::find_array(result_, "bounds");
    ASSERT_NE(bounds, nullptr);
    EXPECT_EQ(testing::verify_clip_bounds(testing::naive_clip_bounds(drawn),
                                          values_of<float>(bounds->inline_array())),
              "");
  }
}

TEST_F(IntersectClipsService, SaysWhereAScenesClipsGoWrong) {
  testing::ClipScene wrong{{0, 2}, {0, 0, 1, 1, 0, 0, 1, 1}};
  expect_refused(wrong, "UNBALANCED_CLIPS", "element 1 ends a clip where none has begun");
  wrong.elements = {0, 1};
  expect_refused(wrong, "UNBALANCED_CLIPS", "the clip that element 1 begins does not end");
  wrong.elements = {0, 7};
  expect_refused(wrong, "WRONG_ELEMENT", "element 1 is not 0, 1 or 2");
  wrong.elements = {0, 0};
  wrong.boxes[2] = std::nanf("");
  expect_refused(wrong, "WRONG_ELEMENT", "element 0 is not 0, 1 or 2, or its box has a NaN");
}

TEST_F(IntersectClipsService, RefusesArraysThatAreNoScene) {
  v1::IntersectClipsRequest request;
  expect_bad_field(intersect(request), "elements", "is missing");
  request = scene({{0}, {0, 0, 1, 1}});
  testing::set_inline<std::int32_t>(*request.mutable_elements(), v1::INT32, {1}, {0});
  expect_bad_field(intersect(request), "elements", "is INT32 [1]; UINT8 [n]");
  request = scene({{0}, {0, 0, 1, 1}});
  testing::set_inline<float>(*request.mutable_boxes(), v1::FLOAT32, {4}, {0, 0, 1, 1});
  expect_bad_field(intersect(request), "boxes", "is FLOAT32 [4]; FLOAT32 [1, 4]");
  testing::set_inline<double>(*request.mutable_boxes(), v1::FLOAT64, {1, 4}, {0, 0, 1, 1});
  expect_bad_field(intersect(request), "boxes", "is FLOAT64 [1, 4]");
}

}  // namespace
}  // namespace cumulus
