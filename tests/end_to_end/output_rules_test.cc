// Outputs that are not lost, standard input and output, and what --json prints.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/end_to_end/image_jobs.h"
#include "tests/end_to_end/json.h"

namespace cumulus::testing {
namespace {

namespace fs = std::filesystem;

class OutputRules : public ImageJobs {
 protected:
  std::string in(const std::string& name) const { return folder_ / name; }

  /// Runs a line of the shell in which $cumulus is the command line of the suite's server.
  static std::string shell(const std::string& line, int& exit_code) {
    const std::string cumulus =
        "cumulus='" + test_program("cumulus").string() + " --server " + daemon_->address() + "'; ";
    FILE* const pipe = popen((cumulus + line).c_str(), "r");
    std::string output;
    std::array<char, 4096> part{};
    for (std::size_t count = 0; (count = fread(part.data(), 1, part.size(), pipe)) > 0;)
      output.append(part.data(), count);
    exit_code = pclose(pipe);
    return output;
  }
};

TEST_F(OutputRules, TwoOutputsThatAreOneFileAreRefused) {
  fs::create_directory(in("x"));
  fs::create_symlink("a.exr", in("link.exr"));
  for (const char* other : {"a.exr", "./a.exr", "x/../a.exr", "link.exr"}) {
    fail({"box-filter", kMap, "--radius", "1", "-o", in("a.exr"), "--deviation", in(other)},
         "--output and --deviation both name ");
  }
  EXPECT_FALSE(fs::exists(in("a.exr")));
}

TEST_F(OutputRules, AnExtensionThatIsNotWhatIsWrittenIsRefused) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"draw-samples", kMap, "-n", "4", "-o", in("z.csv")}, ".npy"},
      {{"evaluate-density", kMap, in("p.npy"), "-o", in("z.exr")}, ".npy"},
      {{"summed-area-table", kMap, "-o", in("s.npy"), "--subtract-mean", in("z.exr")}, ".npy"},
      {{"kd-tree", "build", in("p.npy"), "-o", in("z.npy")}, ".npz"},
      {{"kd-tree", "query", in("t.npz"), in("q.npy"), "-k", "1", "-o", in("z.txt")}, ".npz"},
      {{"match-brackets", in("a.json"), "-o", in("z.json")}, ".npz"},
      {{"clip-drawing", in("a.svg"), "-o", in("z.svg")}, ".npz"},
      {{"run-length", "encode", kMap, "-o", in("z.zip")}, ".rle"},
      {{"run-length", "coco-encode", kMap, "-o", in("z.npy")}, ".json"},
      {{"sampling-table", kMap, "-o", in("z.npz")}, ".cst"},
      {{"blur", kMap, "--sigma", "2", "-o", in("z.npz")}, "no image format has such a name"}};
  for (const auto& [arguments, right] : wrong) {
    const Ended ended = run(arguments);
    EXPECT_NE(ended.exit_code, 0) << arguments.front();
    EXPECT_NE(ended.errors.find(right), std::string::npos) << ended.errors;
    EXPECT_EQ(ended.errors.find("there is no file"), std::string::npos) << ended.errors;
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(OutputRules, NothingThatIsThereIsReplacedWhereThatIsForbidden) {
  std::ofstream(in("a.exr")) << "mine";
  fail({"--no-clobber", "blur", kMap, "--sigma", "2", "-o", in("a.exr")},
       "a.exr is there already, and --no-clobber");
  fail({"blur", kMap, "--sigma", "2", "-o", in("b.exr"), "--preview", in("a.exr"), "--no-clobber"},
       "--no-clobber");
  EXPECT_EQ(read_file(in("a.exr")), "mine");
  EXPECT_FALSE(fs::exists(in("b.exr")));
  succeed({"--no-clobber", "blur", kMap, "--sigma", "2", "-o", in("b.exr")});
  succeed({"blur", kMap, "--sigma", "2", "-o", in("a.exr")});
  EXPECT_EQ(read_file(in("a.exr")), read_file(in("b.exr")));
}

TEST_F(OutputRules, NoCommandReplacesWhatIsThereWhereThatIsForbidden) {
  for (const char* name : {"x.npy", "x.npz", "x.exr", "x.cst", "x.rle", "x.json"})
    std::ofstream(in(name)) << "mine";
  const std::vector<std::vector<std::string>> commands = {
      {"draw-samples", kMap, "-n", "4", "-o", in("x.npy")},
      {"evaluate-density", kMap, in("p.npy"), "-o", in("x.npy")},
      {"sampling-table", kMap, "-o", in("x.cst")},
      {"summed-area-table", kMap, "-o", in("x.npy")},
      {"box-filter", kMap, "--radius", "1", "-o", in("new.exr"), "--deviation", in("x.exr")},
      {"blur", kMap, "--sigma", "2", "-o", in("x.exr")},
      {"bspline-prefilter", kMap, "-o", in("x.exr")},
      {"filter", kMap, "--feedback=-0.5", "-o", in("x.exr")},
      {"kd-tree", "build", in("p.npy"), "-o", in("x.npz")},
      {"kd-tree", "query", in("t.npz"), in("q.npy"), "-k", "1", "-o", in("x.npz")},
      {"match-brackets", in("a.json"), "-o", in("x.npz")},
      {"clip-drawing", in("a.svg"), "-o", in("x.npz")},
      {"run-length", "encode", kMap, "-o", in("x.rle")},
      {"run-length", "decode", in("m.rle"), "-o", in("x.exr")},
      {"run-length", "coco-encode", kMap, "-o", in("x.json")}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), "--no-clobber");
    const Ended ended = run(command);
    EXPECT_EQ(ended.exit_code, 1) << ::testing::PrintToString(command);
    EXPECT_NE(ended.errors.find("is there already, and --no-clobber replaces nothing"), std::string::npos)
        << ended.errors;
  }
  for (const char* name : {"x.npy", "x.npz", "x.exr", "x.cst", "x.rle", "x.json"})
    EXPECT_EQ(read_file(in(name)), "mine") << name;
  EXPECT_FALSE(fs::exists(in("new.exr")));
}

TEST_F(OutputRules, PicturesComeFromStandardInputAndGoToStandardOutput) {
  succeed({"blur", kMap, "--sigma", "3", "-o", in("right.exr")});
  int exit_code = 0;
  const std::string blurred =
      shell("$cumulus blur - --sigma 3 -o - < " + kMap + " 2> " + in("report"), exit_code);
  EXPECT_EQ(exit_code, 0);
  EXPECT_TRUE(blurred == read_file(in("right.exr"))) << blurred.size();
  EXPECT_NE(read_file(in("report")).find("truncation bound"), std::string::npos) << read_file(in("report"));
  const std::string piped =
      shell("cat " + kMap + " | $cumulus --json blur - --sigma 3 -o -.npy 2> " + in("report") +
                " | $cumulus --json box-filter - --radius 0 -o -.exr 2>/dev/null",
            exit_code);
  EXPECT_EQ(exit_code, 0);
  EXPECT_EQ(piped.substr(0, 4), "\x76\x2f\x31\x01");
  EXPECT_EQ(Json(read_file(in("report"))).text("command"), "blur");
  succeed({"sampling-table", kMap, "-o", in("right.cst")});
  const std::string table = shell("$cumulus sampling-table - -o - < " + kMap + " 2>/dev/null", exit_code);
  EXPECT_TRUE(table == read_file(in("right.cst")));
}

TEST_F(OutputRules, PointsAndTreesComeFromStandardInput) {
  std::ofstream(in("points.ply"))
      << "ply\r\nformat ascii 1.0\r\nelement vertex 3\r\nproperty float x\r\nproperty float y\r\n"
         "property float z\r\nend_header\r\n0 0 0\r\n1 2 3\r\n3 2 1\r\n";
  succeed({"kd-tree", "build", in("points.ply"), "-o", in("tree.npz")});
  succeed({"kd-tree", "query", in("tree.npz"), in("points.ply"), "-k", "2", "-o", in("near.npz")});
  int exit_code = 0;
  const std::string tree =
      shell("cat " + in("points.ply") + " | $cumulus kd-tree build - -o - 2>/dev/null", exit_code);
  EXPECT_TRUE(tree == read_file(in("tree.npz"))) << tree.size();
  const std::string near = shell(
      "cat " + in("tree.npz") + " | $cumulus kd-tree query - " + in("points.ply") + " -k 2 -o - 2>/dev/null",
      exit_code);
  EXPECT_TRUE(near == read_file(in("near.npz"))) << near.size();
  const std::string info = shell("$cumulus kd-tree info - < " + in("tree.npz"), exit_code);
  EXPECT_EQ(exit_code, 0) << info;
  const std::string points = shell("$cumulus kd-tree info - 2>&1 < " + in("points.ply"), exit_code);
  EXPECT_NE(points.find("it is a file of points, of which no tree has been built"), std::string::npos)
      << points;
}

TEST_F(OutputRules, StandardInputAndOutputAreNamedInErrors) {
  int exit_code = 0;
  EXPECT_NE(
      shell("true | $cumulus blur - --sigma 2 -o " + in("x.exr") + " 2>&1", exit_code)
          .find("cannot read standard input as an image: nothing comes there; look at what the program"),
      std::string::npos);
  EXPECT_NE(shell("true | $cumulus kd-tree build - -o " + in("x.npz") + " 2>&1", exit_code)
                .find("cannot read points from standard input: a .ply, .npy or .npz file is right"),
            std::string::npos);
  const std::string full = shell("$cumulus blur " + kMap + " --sigma 2 -o - 2>&1 >/dev/full", exit_code);
  EXPECT_NE(
      full.find("cannot write to standard output: No space left on device; lead it to where there is space"),
      std::string::npos)
      << full;
}

TEST_F(OutputRules, ADeviceHasNoFormat) {
  fail(
      {"blur", kMap, "--sigma", "2", "-o", "/dev/null"},
      "the image /dev/null: its name says no format; give -o -.exr or -.png, and lead standard output there");
}

TEST_F(OutputRules, XmlIsToldByItsBeginningWhereThereIsNoName) {
  std::ofstream(in("a.svg")) << "<svg><g><g/></g></svg>";
  int exit_code = 0;
  const std::string report = shell("cat " + in("a.svg") + " | $cumulus --json match-brackets -", exit_code);
  EXPECT_EQ(Json(report).text("syntax"), "xml") << report;
  EXPECT_EQ(Json(report).number("maximum_depth"), 2) << report;
}

TEST_F(OutputRules, JsonIsOneObjectThatFitsTheSchemaAlsoOnFailure) {
  if (std::system("python3 -c pass") != 0) GTEST_SKIP() << "no python3 here";
  std::ofstream(in("a.json")) << R"({"a": [1, [2]]})";
  std::ofstream(in("a.svg"))
      << "<svg viewBox='0 0 9 9'><text>x</text><video/><rect width='3' height='3'/></svg>";
  std::ofstream(in("points.ply"))
      << "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
         "property float z\nend_header\n0 0 0\n1 2 3\n3 2 1\n";
  const std::vector<std::vector<std::string>> commands = {
      {"health"},
      {"capabilities"},
      {"blur", kMap, "--sigma", "2", "-o", in("b.exr")},
      {"box-filter", kMap, "--radius", "2", "-o", in("b.png"), "-d", "uint8"},
      {"summed-area-table", kMap, "-o", in("s.npy"), "--squares", in("q.npy")},
      {"sampling-table", kMap, "-o", in("m.cst")},
      {"draw-samples", in("m.cst"), "-n", "4", "-o", in("s.npy")},
      {"run-length", "encode", kMap, "-o", in("m.rle")},
      {"run-length", "decode", in("m.rle"), "-o", in("m.exr")},
      {"run-length", "info", in("m.rle")},
      {"kd-tree", "build", in("points.ply"), "-o", in("t.npz")},
      {"kd-tree", "info", in("t.npz")},
      {"match-brackets", in("a.json")},
      {"clip-drawing", in("a.svg"), "-o", in("c.npz")},
      // And those that fail.
      {"blur", kMap, "--sigma", "nan", "-o", in("b.exr")},
      {"blur", in("caf\xe9.exr"), "--sigma", "2", "-o", in("b.exr")},
      {"blur", kMap, "--sigma", "2", "-o", in("none/b.exr")},
      {"paint"},
  };
  std::ofstream reports(in("reports"));
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), "--json");
    const Ended ended = run(command);
    EXPECT_NE(ended.output, "") << ::testing::PrintToString(command) << ended.errors;
    EXPECT_EQ(ended.output.find("\"error\":{") != std::string::npos, ended.exit_code != 0) << ended.output;
    reports << ended.output;
  }
  reports.close();
  int exit_code = 0;
  const std::string problems =
      shell("python3 " CUMULUS_CHECK_REPORT " " CUMULUS_REPORT_SCHEMA " < " + in("reports"), exit_code);
  EXPECT_EQ(exit_code, 0) << problems;
}

TEST_F(OutputRules, AFailureSaysItsCodeFieldAndMessage) {
  const Ended wrong = run({"--json", "blur", kMap, "--sigma", "nan", "-o", in("b.exr")});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(Json(wrong.output).text("error.code"), "INVALID_ARGUMENT");
  EXPECT_EQ(Json(wrong.output).number("error.exit_code"), 2);
  EXPECT_EQ(Json(wrong.output).text("error.field"), "--sigma");
  const Ended missing = run({"--json", "blur", in("none.exr"), "--sigma", "2", "-o", in("b.exr")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(Json(missing.output).text("error.code"), "NOT_FOUND");
  EXPECT_EQ(Json(missing.output).text("error.field"), in("none.exr"));
  const Ended alone = run_cumulus({"--json", "--server", "unix:/nonexistent", "health"});
  EXPECT_EQ(alone.exit_code, 3);
  EXPECT_EQ(Json(alone.output).number("error.exit_code"), 3);
  const Ended refused = run({"--json", "filter", kMap, "-o", in("b.exr"), "--feedback", "-2,1.21"});
  EXPECT_EQ(Json(refused.output).text("error.field"), "--feedback");
}

}  // namespace
}  // namespace cumulus::testing
