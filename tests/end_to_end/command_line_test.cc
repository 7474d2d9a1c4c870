// The real command line, and the daemon that it starts. No picture but a .npy file is read or written here:
// builds without image libraries run this, too.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/end_to_end/json.h"
#include "tests/end_to_end/npy_file.h"
#include "tests/end_to_end/program.h"
#include "tests/support/test_data.h"

namespace cumulus::testing {
namespace {

namespace fs = std::filesystem;

const std::string kMap = test_data("sunrise.exr").string();

/// A picture of 8 x 8 ones.
void write_map(const std::string& path) {
  const std::vector<float> ones(64, 1.0F);
  const std::string elements(reinterpret_cast<const char*>(ones.data()), ones.size() * sizeof(float));
  std::ofstream(path, std::ios::binary) << npy_file("<f4", "8, 8", elements);
}

bool begins_with(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

TEST(CommandLine, TellsHowToUseIt) {
  const Ended help = run_cumulus({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"sampling-table", "draw-samples", "evaluate-density", "summed-area-table",
                              "box-filter", "batch", "bench", "health", "capabilities"}) {
    EXPECT_NE(help.output.find(command), std::string::npos) << command;
    EXPECT_EQ(run_cumulus({command, "--help"}).exit_code, 0) << command;
  }
  const Ended version = run_cumulus({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(begins_with(version.output, "cumulus ")) << version.output;
}

TEST(CommandLine, ExitsWithTwoWhenItIsWrong) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"paint"},
      {"health", "--colour"},
      {"sampling-table", kMap},
      {"sampling-table", kMap, "-o", "x.cst", "--projection", "globe"},
      {"sampling-table", kMap, "-o", "x.cst", "--method", "magic"},
      {"sampling-table", kMap, "-o", "x.cst", "--interpolation", "cubic"},
      {"sampling-table", kMap, "-o", "x.cst", "--guide-size", "0"},
      {"sampling-table", kMap, "-o", "x.cst", "--luminance", "bt601"},
      {"sampling-table", kMap, "-o", "x.npz", "--export", "renderman"},
      {"sampling-table", "x.cst", "-o", "y.cst"},
      {"sampling-table", kMap, "-o", "x.cst", "--luminance", "1,-1,1"},
      {"draw-samples", kMap, "-n", "4"},
      {"draw-samples", kMap, "-n", "0", "-o", "x.npy"},
      {"draw-samples", kMap, "-n", "4", "-o", "x.npy", "--sequence", "halton"},
      {"draw-samples", "x.cst", "-n", "4", "--preview", "x.png"},
      {"draw-samples", "x.cst", "-n", "4294967297", "-o", "x.npy"},
      {"draw-samples", "x.cst", "-n", "4", "--first-index", "4294967293", "-o", "x.npy"},
      {"draw-samples", "x.cst", "-n", "4", "--first-index", "1", "--total", "4", "-o", "x.npy"},
      {"evaluate-density", "x.cst", "-o", "x.npy"},
      {"summed-area-table", kMap, "-o", "x.png"},
      {"box-filter", kMap, "-o", "x.exr"},
      {"box-filter", kMap, "-o", "x.exr", "--radius", "-1"},
      {"bench", "--size", "15"},
      {"--backend", "abacus", "health"},
      {"--backend", "cpu", "--server", "127.0.0.1:1", "health"},
      {"--wait-for-server", "-1", "health"},
      {"completion", "csh"},
      {"blur", kMap, "-o", "{stem}.exr", "--simga", "3"},
  };
  for (const auto& arguments : wrong) {
    const Ended ended = run_cumulus(arguments);
    const std::string shown = ::testing::PrintToString(arguments);
    EXPECT_EQ(ended.exit_code, 2) << shown << ended.errors;
    EXPECT_TRUE(begins_with(ended.errors, "cumulus: ")) << shown << ended.errors;
    EXPECT_EQ(ended.output, "") << shown;
  }
}

TEST(CommandLine, TellsOfACommandWithItsExamplesAndWhatEveryCommandTakes) {
  const Ended help = run_cumulus({"help", "kd-tree", "query"});
  EXPECT_EQ(help.exit_code, 0) << help.errors;
  EXPECT_EQ(help.output, run_cumulus({"kd-tree", "query", "--help"}).output);
  for (const char* part : {"--radius", "Examples:\n  cumulus kd-tree query ", "Options of every command",
                           "--server", "--wait-for-server", "--dry-run", "--json"})
    EXPECT_NE(help.output.find(part), std::string::npos) << part << "\n" << help.output;
  EXPECT_EQ(run_cumulus({"help"}).output, run_cumulus({"--help"}).output);
  EXPECT_EQ(run_cumulus({"help", "paint"}).exit_code, 2);
}

TEST(CommandLine, SaysWhichServerWinsWhereABackendAndAVariableAreGiven) {
  const Environment named = {{"CUMULUS_SERVER", "127.0.0.1:1"}};
  const Ended own = run_cumulus({"--backend", "cpu", "health"}, named);
  EXPECT_EQ(own.exit_code, 0) << own.errors;
  EXPECT_EQ(own.errors,
            "cumulus: --backend cpu starts a server of the command's own; CUMULUS_SERVER (127.0.0.1:1) is "
            "not used\n");
}

TEST(CommandLine, NamesAHostThatHasNoAddressInItsOwnWords) {
  const Ended ended = run_cumulus({"--server", "no-such-host.invalid:50651", "health"});
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_NE(ended.errors.find("no address is known for this name"), std::string::npos) << ended.errors;
  EXPECT_EQ(ended.errors.find("ares"), std::string::npos) << ended.errors;
}

TEST(CommandLine, WaitsForAServerThatIsYetToStart) {
  const TemporaryFolder folder;
  const std::string address = "unix:" + (folder / "socket");
  Program waiting(test_program("cumulus"),
                  {"--server", address, "--wait-for-server", "60", "--json", "health"});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(waiting.running());
  const Daemon daemon({"--listen", address});
  const Ended ended = waiting.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(Json(ended.output).text("status"), "SERVING");
}

TEST(CommandLine, ChecksWithoutRunningAndWriting) {
  const TemporaryFolder folder;
  const std::string map = folder / "map.npy";
  write_map(map);
  const std::string output = folder / "x.npy";
  const Ended right =
      run_cumulus({"--backend", "cpu", "--json", "--dry-run", "blur", map, "-o", output, "--sigma", "3"});
  EXPECT_EQ(right.exit_code, 0) << right.errors;
  EXPECT_NE(Json(right.output).text("dry_run"), "");
  const Ended samples =
      run_cumulus({"--backend", "cpu", "--dry-run", "draw-samples", map, "-n", "9", "-o", output});
  EXPECT_EQ(samples.exit_code, 0) << samples.errors;
  const Ended wrong =
      run_cumulus({"--backend", "cpu", "--dry-run", "box-filter", map, "-o", output, "--radius", "2000000"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.errors.find("--radius"), std::string::npos) << wrong.errors;
  EXPECT_FALSE(fs::exists(output));
}

TEST(CommandLine, TakesSeveralInputsOfWhichEachHasAnOutputOfItsOwn) {
  const TemporaryFolder folder;
  for (const char* name : {"a.npy", "b.npy"}) write_map(folder / name);
  const Ended ended = run_cumulus({"--backend", "cpu", "--json", "box-filter", folder / "a.npy",
                                   folder / "b.npy", "-o", folder / "{stem}_{index}.npy", "--radius", "2"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(Json(ended.output).number("done"), 2);
  EXPECT_TRUE(fs::exists(folder / "a_000000.npy"));
  EXPECT_TRUE(fs::exists(folder / "b_000001.npy"));
  const Ended same = run_cumulus(
      {"box-filter", folder / "a.npy", folder / "b.npy", "-o", folder / "{ext}.npy", "--radius", "2"});
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_NE(same.errors.find("writes a file that another job writes"), std::string::npos) << same.errors;
}

TEST(CommandLine, CompletesWordsInBash) {
  const std::vector<std::pair<std::string, std::string>> completed = {
      {"(cumulus bl)", "blur"},
      {"(cumulus --js)", "--json"},
      {"(cumulus kd-tree q)", "query"},
      {"(cumulus --json kd-tree query --perio)", "--period"},
      {"(cumulus blur in.exr --algorithm on)", "on-chip"},
      {"(cumulus --backend '')", "cpu cuda"},
  };
  const TemporaryFolder folder;
  std::ofstream(folder / "script") << run_cumulus({"completion", "bash"}).output;
  for (const auto& [words, right] : completed) {
    const std::string asked = ". '" + (folder / "script") + "'; COMP_WORDS=" + words +
                              "; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cumulus; echo \"${COMPREPLY[*]}\"";
    const Ended ended = Program("/bin/bash", {"-c", asked}).wait();
    EXPECT_EQ(ended.output, right + "\n") << words << ended.errors;
  }
}

TEST(CommandLine, MeasuresTheServer) {
  for (const char* size : {"64", "33"}) {
    const Ended ended = run_cumulus({"--backend", "cpu", "--json", "bench", "--size", size, "--repeat", "2"});
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    const Json report(ended.output);
    for (const char* figure :
         {"round_trip_seconds", "upload_gigabytes_per_second", "download_gigabytes_per_second",
          "operations.0.compute_seconds", "operations.5.compute_seconds"})
      EXPECT_GT(report.number(figure), 0) << figure;
    for (const char* operation : {"operations.0", "operations.5"})
      EXPECT_GT(report.number(std::string(operation) + ".call_seconds"),
                report.number(std::string(operation) + ".compute_seconds"));
    EXPECT_EQ(report.text("device.name"), "cpu");
  }
}

TEST(CommandLine, ExitsWithThreeWithoutAServer) {
  const Ended named = run_cumulus({"--server", "unix:/nonexistent/socket", "health"});
  EXPECT_EQ(named.exit_code, 3);
  EXPECT_TRUE(begins_with(named.errors, "cumulus: no Cumulus server answers at unix:/nonexistent/socket: "))
      << named.errors;
  EXPECT_EQ(run_cumulus({"health"}, {{"CUMULUS_SERVER", "127.0.0.1:1"}}).exit_code, 3);

  const TemporaryFolder elsewhere;
  const fs::path copy = elsewhere / "cumulus";
  fs::copy_file(test_program("cumulus"), copy);
  const Ended alone = Program(copy, {"health"}, {{"PATH", "/nonexistent"}}).wait();
  EXPECT_EQ(alone.exit_code, 3);
  EXPECT_TRUE(begins_with(alone.errors, "cumulus: cannot find cumulusd beside this program")) << alone.errors;

  std::ofstream(elsewhere / "cumulusd") << "#!/bin/sh\necho out of memory >&2\nexit 1\n";
  fs::permissions(elsewhere / "cumulusd", fs::perms::owner_all);
  const Ended failing = Program(copy, {"health"}, {{"PATH", "/nonexistent"}}).wait();
  EXPECT_EQ(failing.exit_code, 3);
  EXPECT_EQ(failing.errors, "cumulus: the private cumulusd did not start: out of memory\n");
}

TEST(CommandLine, LeavesTheMemoryOfAGpuToOthersWhereItStartsADaemon) {
  const TemporaryFolder elsewhere;
  const fs::path copy = elsewhere / "cumulus";
  fs::copy_file(test_program("cumulus"), copy);
  std::ofstream(elsewhere / "cumulusd") << "#!/bin/sh\necho \"asked for $*\" >&2\nexit 1\n";
  fs::permissions(elsewhere / "cumulusd", fs::perms::owner_all);
  const Ended asked = Program(copy, {"health"}, {{"PATH", "/usr/bin:/bin"}}).wait();
  EXPECT_NE(asked.errors.find("--memory-on-demand"), std::string::npos) << asked.errors;
}

TEST(CommandLine, SaysBeforeTheWorkWhatCannotBeWritten) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"sampling-table", "-o", folder / "missing/x.cst"}, "there is no folder " + (folder / "missing")},
      {{"sampling-table", "-o", folder.path().string()}, "it is a folder"},
      {{"draw-samples", "-n", "1", "-o", folder / "x.png", "--preview", folder / "x.png"}, "both name"},
  };
  for (auto [arguments, message] : wrong) {
    arguments.push_back(kMap);
    arguments.insert(arguments.begin(), {"--server", "127.0.0.1:1"});  // nobody: it is not asked
    const Ended ended = run_cumulus(arguments);
    EXPECT_EQ(ended.exit_code, 1) << ended.errors;
    EXPECT_NE(ended.errors.find(message), std::string::npos) << ended.errors;
  }
}

TEST(CommandLine, SaysWhatIsRightForANumberOrANameThatIsNot) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"blur", kMap, "-o", "x.exr", "--sigma", "nan"}, "--sigma: is nan; a number, 0.5 to 10000, is right"},
      {{"blur", kMap, "-o", "x.exr", "--sigma", "8px"}, "--sigma: is 8px; a number, 0.5 to 10000, is right"},
      {{"box-filter", kMap, "-o", "x.exr", "--radius", "-3"},
       "--radius: is -3; a whole number, 0 to 2147483647,"},
      {{"box-filter", kMap, "-o", "x.exr", "--radius", "2.5"}, "--radius: is 2.5; a whole number"},
      {{"box-filter", kMap, "-o", "x.exr", "--radius", "1", "--boundary", "mirrored"},
       "--boundary: is mirrored; one of clamp, exact, mirror, reflect, repeat, zero is right"},
      {{"box-filter", kMap, "-o", "x.exr", "--radius-map", kMap, "--radius-scale", "nan"},
       "--radius-scale: is nan"},
      {{"draw-samples", kMap, "-n", "4k", "-o", "x.npy"},
       "--count: is 4k; a whole number, at least 1, is right"},
      {{"draw-samples", kMap, "-n", "4", "-o", "x.npy", "--seed", "-1"},
       "--seed: is -1; a whole number, 0 to 18446744073709551615,"},
      {{"kd-tree", "query", "t.npz", "q.npy", "-o", "x.npz", "--radius", "nan"}, "--radius: is nan"},
  };
  for (const auto& [arguments, message] : wrong) {
    const Ended ended = run_cumulus(arguments);
    EXPECT_EQ(ended.exit_code, 2) << ended.errors;
    EXPECT_NE(ended.errors.find(message), std::string::npos) << ended.errors;
  }
}

TEST(CommandLine, NamesTheWordThatItDoesNotKnow) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"blurr", kMap, "--sigma", "3"}, "there is no command blurr; was blur meant?"},
      {{"paint", kMap}, "there is no command paint; cumulus --help"},
      {{"blur", kMap, "-o", "x.exr", "--simga", "3"}, "there is no option --simga; was --sigma meant?"},
      {{"--jsn", "health"}, "there is no option --jsn; was --json meant?"},
      {{"run-length"},
       "a command is missing: encode, decode, info, coco-encode, coco-decode; cumulus run-length --help"},
      {{"kd-tree", "biuld"}, "there is no command biuld; was build meant?"},
      {{"blur", "a.exr", "b.exr", "c.exr", "-o", "out", "--sigma", "3"},
       "b.exr is one word too many, and 1 more follow; for a job of each of several inputs give the output a "
       "place "
       "for their names: -o out/{stem}.exr; cumulus blur --help"},
      {{"blur", "a.exr", "b.exr", "-o", "out/{idx}.exr", "--sigma", "3"},
       "b.exr is one word too many; {idx} of out/{idx}.exr is no place for a part of their names: {stem}, "
       "{name}"},
      {{"draw-samples", "a.exr", "b.exr", "-n", "9", "-o", "s.npy"},
       "their names: -o out/{stem}.npy; cumulus"},
  };
  for (const auto& [arguments, message] : wrong) {
    const Ended ended = run_cumulus(arguments);
    EXPECT_EQ(ended.exit_code, 2) << ended.errors;
    EXPECT_NE(ended.errors.find(message), std::string::npos) << ended.errors;
  }
}

TEST(CommandLine, SaysThatAFolderIsNoDocument) {
  const TemporaryFolder folder;
  for (const char* command : {"match-brackets", "clip-drawing"}) {
    const Ended ended = run_cumulus({command, folder.path().string()});
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_NE(ended.errors.find("it is a folder; name a file"), std::string::npos) << ended.errors;
  }
}

TEST(CommandLine, PointsToTheHelpOfTheCommandThatWasMeant) {
  const Ended typo = run_cumulus({"blur", kMap, "-o", "x.exr", "--sigma", "0"});
  EXPECT_NE(typo.errors.find("; cumulus blur --help tells"), std::string::npos) << typo.errors;
  const Ended inner = run_cumulus({"run-length", "encode", kMap});
  EXPECT_NE(inner.errors.find("; cumulus run-length encode --help tells"), std::string::npos) << inner.errors;
}

TEST(CommandLine, TellsTheHealthAndCapabilitiesOfItsOwnDaemon) {
  const Ended health = run_cumulus({"--backend", "cpu", "health"});
  ASSERT_EQ(health.exit_code, 0) << health.errors;
  EXPECT_NE(health.output.find("SERVING"), std::string::npos) << health.output;
  EXPECT_EQ(health.errors, "");

  const Ended capabilities = run_cumulus({"--backend", "cpu", "--json", "capabilities"});
  ASSERT_EQ(capabilities.exit_code, 0) << capabilities.errors;
  const Json report(capabilities.output);
  EXPECT_EQ(report.text("devices.0.backend"), "cpu");
  EXPECT_EQ(report.text("operations.0"), "BuildSamplingTable");
  EXPECT_GT(report.number("max_chunk_bytes"), 0);
}

TEST(CommandLine, TakesItsOwnOptionsAfterTheCommandToo) {
  const Ended capabilities = run_cumulus({"capabilities", "--backend", "cpu", "--json"});
  ASSERT_EQ(capabilities.exit_code, 0) << capabilities.errors;
  EXPECT_EQ(Json(capabilities.output).text("devices.0.backend"), "cpu");
  EXPECT_EQ(run_cumulus({"health", "--server", "unix:/nonexistent/socket"}).exit_code, 3);
}

TEST(CommandLine, TalksToTheServerThatIsNamed) {
  Daemon daemon;
  const Ended option = run_cumulus({"--server", daemon.address(), "--json", "health"});
  ASSERT_EQ(option.exit_code, 0) << option.errors;
  const Ended variable = run_cumulus({"--json", "health"}, {{"CUMULUS_SERVER", daemon.address()}});
  ASSERT_EQ(variable.exit_code, 0) << variable.errors;
  const std::string instance = Json(option.output).text("instance");
  EXPECT_NE(instance, "");
  EXPECT_EQ(Json(variable.output).text("instance"), instance);
}

TEST(CommandLine, LeavesNothingBehindOfItsOwnDaemon) {
  const TemporaryFolder temporary;
  const Environment environment = {{"TMPDIR", temporary.path().string()}};
  EXPECT_EQ(run_cumulus({"--backend", "cpu", "health"}, environment).exit_code, 0);
  EXPECT_TRUE(fs::is_empty(temporary.path()));
  EXPECT_EQ(run_cumulus({"--backend", "cpu", "sampling-table", "nothing.exr", "-o", "x.cst"}, environment)
                .exit_code,
            1);
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

}  // namespace
}  // namespace cumulus::testing
