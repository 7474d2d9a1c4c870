// match-brackets on files as they come.
#include "cumulus/bracket_match.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/errors.h"
#include "tests/end_to_end/json.h"
#include "tests/end_to_end/program.h"

namespace cumulus::testing {
namespace {

class MatchBracketsCommand : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string report_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--json", "match-brackets"});
    const Ended ended = run_cumulus(arguments);
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    return ended.output;
  }
  static std::string complaint_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "match-brackets");
    const Ended ended = run_cumulus(arguments);
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_EQ(ended.output, "");
    return ended.errors;
  }

  TemporaryFolder folder_;
};

constexpr const char* kDrawing =
    "<?xml version='1.0'?>\n<!DOCTYPE svg [<!ENTITY x \"<g>\"> <!-- <g> ]> -->]>\n<svg>\n"
    "  <!-- <g> --><g id='a>b'>\n    <path d=\"<g>\"/><![CDATA[</svg>]]>\n  </g>\n</svg>\n";

TEST_F(MatchBracketsCommand, ReadsTheTagsOfADrawing) {
  const Json report(report_of({file("drawing.svg", kDrawing), "-o", folder_ / "nesting.npz"}));
  EXPECT_EQ(report.text("syntax"), "xml");
  EXPECT_EQ(report.number("tokens"), 5);
  EXPECT_EQ(report.number("maximum_depth"), 2);
  EXPECT_EQ(report.text("deepest.0"), "svg 3:1");
  EXPECT_EQ(report.text("deepest.2"), "path 5:5");
  EXPECT_EQ(report.text("nesting.2.path"), "svg/g/path");
  EXPECT_EQ(report.number("nesting.2.elements"), 1);
  EXPECT_EQ(read_file(folder_ / "nesting.npz").substr(0, 2), "PK");
}

TEST_F(MatchBracketsCommand, ReadsJsonAndPlainText) {
  const Json json(report_of({file("a.json", R"({"a": ["]", "\"]", {}]})")}));
  EXPECT_EQ(json.number("tokens"), 6);
  EXPECT_EQ(json.number("maximum_depth"), 3);
  const Json text(report_of({file("a.txt", "f(x[1])")}));
  EXPECT_EQ(text.number("bytes"), 7);
  EXPECT_EQ(text.number("maximum_depth"), 2);
}

TEST_F(MatchBracketsCommand, KnowsNamesInCapitalsAndRefusesPairsThatAreNone) {
  EXPECT_EQ(Json(report_of({file("A.XML", "<a/>")})).text("syntax"), "xml");
  for (const char* pairs : {"", "("}) {
    const Ended ended = run_cumulus({"match-brackets", "--pairs", pairs, file("a.txt", "()")});
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_NE(ended.errors.find("opens and closes in turn"), std::string::npos) << ended.errors;
  }
}

TEST_F(MatchBracketsCommand, SaysWhereAFileIsUnbalanced) {
  const std::string drawing = file("a.svg", "<svg>\n  <g>\n</svg>\n");
  EXPECT_EQ(complaint_of({drawing}),
            "cumulus: " + drawing + ":3:1: </svg> where </g> is right, to close what opens at 2:3\n");
  const std::string text = file("a.txt", "a)\n");
  EXPECT_EQ(complaint_of({text}),
            "cumulus: " + text + ":1:2: ')' closes nothing; take it out, or open something before it\n");
  const std::string json = file("a.json", "[{}");
  EXPECT_EQ(complaint_of({json}),
            "cumulus: " + json + ":1:4: the end where ']' is right, to close what opens at 1:1\n");
  const Json lenient(report_of({text, "--lenient"}));
  EXPECT_EQ(lenient.number("unmatched"), 1);
}

TEST_F(MatchBracketsCommand, SaysWhereATokenDoesNotEnd) {
  const std::string comment = file("a.xml", "<a>\n<!-- b");
  EXPECT_EQ(complaint_of({comment}),
            "cumulus: " + comment + ":2:1: this comment does not end; --> is missing\n");
  const std::string string = file("a.json", "[\"a]");
  EXPECT_EQ(complaint_of({string}), "cumulus: " + string + ":1:2: this string does not end; \" is missing\n");
}

constexpr const char* kClippedDrawing =
    "<svg width='100' height='100'>\n"
    "  <clipPath id='left'><rect width='50' height='100'/></clipPath>\n"
    "  <g clip-path='url(#left)' transform='translate(10)'>\n"
    "    <rect x='0' y='0' width='20' height='20'/><circle cx='50' cy='50' r='10'/><path d='M 70 70 l 5 "
    "5'/>\n"
    "  </g>\n"
    "  <rect x='90' y='90' width='20' height='5'/>\n"
    "</svg>\n";

TEST_F(MatchBracketsCommand, CullsADrawingsShapesAgainstItsClips) {
  const std::string drawing = file("clipped.svg", kClippedDrawing);
  const Ended ended = run_cumulus({"--json", "clip-drawing", drawing, "-o", folder_ / "clips.npz"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  const Json report(ended.output);
  EXPECT_EQ(report.number("clips"), 2);
  EXPECT_EQ(report.number("shapes"), 4);
  EXPECT_EQ(report.number("whole"), 1);
  EXPECT_EQ(report.number("cut"), 2);
  EXPECT_EQ(report.number("culled"), 1);
  EXPECT_EQ(read_file(folder_ / "clips.npz").substr(0, 2), "PK");
}

TEST_F(MatchBracketsCommand, TakesAViewAsOneMoreClip) {
  const std::string drawing = file("clipped.svg", kClippedDrawing);
  const Ended ended = run_cumulus({"--json", "clip-drawing", drawing, "--view", "0,0,15,15"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(Json(ended.output).number("cut"), 1);
  EXPECT_EQ(Json(ended.output).number("culled"), 3);
  EXPECT_EQ(run_cumulus({"clip-drawing", "--view", "-5,0,inf,15", drawing}).exit_code, 0);
  for (const char* view : {"1,1,0,0", "0,0,1", "0,0,1,1,1", "0,0,1,x", ""}) {
    const Ended wrong = run_cumulus({"clip-drawing", "--view", view, drawing});
    EXPECT_EQ(wrong.exit_code, 2) << view;
    EXPECT_NE(wrong.errors.find("--view: is "), std::string::npos) << wrong.errors;
  }
}

TEST_F(MatchBracketsCommand, SaysWhereADrawingDoesNotNest) {
  const std::string drawing = file("open.svg", "<svg>\n<g></svg>\n");
  const Ended ended = run_cumulus({"clip-drawing", drawing});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.errors,
            "cumulus: " + drawing + ":2:4: this closes no open element; the tags of a drawing nest\n");
}

TEST(MatchBracketsLibrary, AsksForWhatTheOptionsSay) {
  Daemon daemon;
  const absl::StatusOr<Client> client = Client::connect(daemon.address());
  ASSERT_TRUE(client.ok()) << client.status();
  const std::vector<std::int32_t> tokens = {7, -7, 7, -7, -8, 9};
  const std::vector<std::int64_t> begins = {0, 3, 5};
  BracketMatchOptions options;
  options.outputs = {BracketOutput::kStackTop, BracketOutput::kPartner, BracketOutput::kMaximumDepth};
  options.segments = ArrayView(begins);
  options.wide_indices = true;
  const absl::Status strict = client->run(match_brackets(ArrayView(tokens), options)).status();
  EXPECT_EQ(error_reason(strict), "UNBALANCED_BRACKETS") << strict;
  EXPECT_EQ(error_metadata(strict).at("position"), "3");
  EXPECT_EQ(error_metadata(strict).at("segment"), "0");
  options.lenient = true;
  absl::StatusOr<Result> result = client->run(match_brackets(ArrayView(tokens), options));
  ASSERT_TRUE(result.ok()) << result.status();
  const auto fetch = [&](const char* name) {
    const absl::StatusOr<Array> array = result->fetch(name);
    EXPECT_TRUE(array.ok()) << array.status();
    const auto values = array->values<std::int64_t>();
    EXPECT_TRUE(values.ok()) << values.status();
    return std::vector<std::int64_t>(values->begin(), values->end());
  };
  EXPECT_EQ(fetch("partner"), (std::vector<std::int64_t>{1, 0, -1, -1, -1, -1}));
  EXPECT_EQ(fetch("stack_top"), (std::vector<std::int64_t>{0, -1, 2, -1, -1, 5}));
  EXPECT_EQ(fetch("maximum_depth"), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(fetch("unmatched"), (std::vector<std::int64_t>{4}));
}

}  // namespace
}  // namespace cumulus::testing
