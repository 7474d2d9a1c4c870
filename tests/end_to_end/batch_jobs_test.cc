// Many jobs by one command.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/end_to_end/json.h"
#include "tests/end_to_end/restarting_daemon.h"
#include "tests/end_to_end/served_jobs.h"
#include "tests/support/test_data.h"

namespace cumulus::testing {
namespace {

namespace fs = std::filesystem;

const std::string kMap = test_data("sunrise.exr").string();

class BatchJobs : public ServedJobs {
 protected:
  std::string in(const std::string& name) const { return folder_ / name; }

  /// Writes the manifest; "@" stands for the test's folder.
  void write_manifest(const std::vector<std::string>& lines) const {
    std::ofstream file(in("jobs.txt"));
    for (std::string line : lines) {
      for (std::size_t at = line.find('@'); at != std::string::npos; at = line.find('@'))
        line.replace(at, 1, folder_.path().string());
      file << line << '\n';
    }
  }

  Ended batch(std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"--json", "batch", in("jobs.txt")});
    return run(options);
  }
  /// Expects that all went well, and how many were done now and how many before.
  void expect_done(int done, int kept, const std::vector<std::string>& options = {}) const {
    const Ended ended = batch(options);
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    const Json report(ended.output);
    EXPECT_EQ(report.number("done"), done) << ended.output;
    EXPECT_EQ(report.number("kept"), kept) << ended.output;
  }

  /// As if somebody had saved the file a second from now.
  void touch(const std::string& name) const {
    fs::last_write_time(in(name), fs::file_time_type::clock::now() + std::chrono::seconds(1));
  }
};

const std::vector<std::string> kChain = {
    "# a table, what is drawn from it, and a blur of a blur",
    "",
    "sampling-table @/map.exr -o '@/a table.cst'",
    "draw-samples \"@/a table.cst\" -n 64 -o @/a\\ table.npy",
    "cumulus blur @/map.exr -o @/once.exr --sigma 2",
    "blur @/once.exr --output=@/twice.exr --sigma 2",
};

TEST_F(BatchJobs, AreDoneInTheOrderThatTheirFilesAskFor) {
  fs::copy_file(kMap, in("map.exr"));
  write_manifest(kChain);
  const Ended ended = batch({"--jobs", "4"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(ended.errors, "");
  const Json report(ended.output);
  EXPECT_EQ(report.number("done"), 4);
  EXPECT_EQ(report.number("jobs.1.line"), 4);
  EXPECT_EQ(report.text("jobs.1.state"), "done");
  EXPECT_EQ(report.number("jobs.1.report.samples"), 64);
  for (const char* name : {"a table.cst", "a table.npy", "once.exr", "twice.exr"})
    EXPECT_TRUE(fs::exists(in(name))) << name;
}

TEST_F(BatchJobs, AreNotDoneTwice) {
  fs::copy_file(kMap, in("map.exr"));
  write_manifest(kChain);
  expect_done(4, 0);
  expect_done(0, 4);
  fs::remove(in("a table.npy"));
  expect_done(1, 3);
  touch("once.exr");  // what is read from it is older now
  expect_done(1, 3);
  expect_done(4, 0, {"--anew"});
  expect_done(0, 4);
  std::vector<std::string> changed = kChain;
  changed.back() += " --boundary zero";
  write_manifest(changed);
  expect_done(1, 3);
  expect_done(4, 0, {"--record", in("another record")});
}

TEST_F(BatchJobs, HoldUpOnlyThoseThatNeedThemWhenTheyFail) {
  write_manifest({"blur @/missing.exr -o @/blurred.exr --sigma 2",
                  "box-filter @/blurred.exr -o @/boxed.exr --radius 2",
                  "summed-area-table " + kMap + " -o @/sums.npy"});
  const Ended ended = batch();
  EXPECT_EQ(ended.exit_code, 1);
  const std::string manifest = in("jobs.txt");
  EXPECT_EQ(ended.errors,
            "cumulus: " + manifest + ":1: there is no file " + in("missing.exr") +
                "; give an image file that exists\ncumulus: " + manifest +
                ":2: it needs line 1, which is not done\ncumulus: 1 job of " + manifest +
                " failed, and 1 could not be run for that; mend what is said above and run the same "
                "command again: what is done is kept\n");
  const Json report(ended.output);
  EXPECT_EQ(report.number("done"), 1);
  EXPECT_EQ(report.number("failed"), 1);
  EXPECT_EQ(report.number("not_run"), 1);
  EXPECT_EQ(report.text("jobs.0.state"), "failed");
  EXPECT_TRUE(fs::exists(in("sums.npy")));
  fs::copy_file(kMap, in("missing.exr"));
  expect_done(2, 1);
}

TEST_F(BatchJobs, AreAllCheckedBeforeTheFirstIsRun) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"paint", "there is no command paint"},
      {"blur @/a.exr -o @/b.exr", "--sigma is required"},
      {"blur @/a.exr -o @/b.exr --sigma 0", "--sigma: is 0; a number, 0.5 to 10000, is right"},
      {"blur @/a.exr -o '@/b.exr --sigma 2", "the quote ' is not closed"},
      {"blur @/a.exr -o @/b.exr \\", "the line ends with a backslash"},
      {"blur @/a.exr -o @/nowhere/b.exr --sigma 2", "nowhere"},
      {"blur @/a.exr -o @/./sums.npy --sigma 2", "it writes a file that line 1 writes, too"},
      {"blur --help", "--help is no job"},
      {"batch @/jobs.txt", "a batch within a batch"},
      {"--json health", "--json is for all jobs: give it to cumulus batch"},
      {"blur @/none*.exr -o @/{stem}.png --sigma 2", "no file fits"},
      {"blur @/*.txt -o @/one.exr --sigma 2 --simga 3", "there is no option --simga; was --sigma meant?"},
  };
  for (const auto& [line, reason] : wrong) {
    write_manifest({"summed-area-table " + kMap + " -o @/sums.npy", "# next", line});
    const Ended ended = batch();
    EXPECT_EQ(ended.exit_code, 1) << line;
    EXPECT_EQ(ended.errors.rfind("cumulus: " + in("jobs.txt") + ":3: ", 0), 0U) << ended.errors;
    EXPECT_NE(ended.errors.find(reason), std::string::npos) << ended.errors;
    EXPECT_FALSE(fs::exists(in("sums.npy"))) << line;
  }
  write_manifest({"# nothing"});
  fail({"batch", in("jobs.txt")}, "holds no job");
  EXPECT_EQ(run({"batch", in("nothing.txt")}).exit_code, 2);
  EXPECT_EQ(run({"batch", in("jobs.txt"), "--jobs", "0"}).exit_code, 2);
}

TEST_F(BatchJobs, GoOnAfterAnInterrupt) {
  write_manifest({"summed-area-table " + kMap + " -o @/sums.npy",
                  "draw-samples " + kMap + " -n 2000000000 -o @/samples.npy",
                  "box-filter " + kMap + " -o @/b.exr --radius 2"});
  Program program(test_program("cumulus"),
                  {"--server", daemon_->address(), "batch", in("jobs.txt"), "--jobs", "1"});
  for (int i = 0; i < 3000 && !fs::exists(in("sums.npy")); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  program.send(SIGINT);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, 130);
  EXPECT_EQ(ended.errors, "cumulus: interrupted\n");
  EXPECT_FALSE(fs::exists(in("samples.npy")));
  write_manifest({"summed-area-table " + kMap + " -o @/sums.npy",
                  "draw-samples " + kMap + " -n 20 -o @/samples.npy",
                  "box-filter " + kMap + " -o @/b.exr --radius 2"});
  expect_done(2, 1);
}

TEST_F(BatchJobs, AreMadeOfPatternsAndPlaces) {
  fs::create_directory(in("maps"));
  fs::create_directory(in("out"));
  for (const char* name : {"a b.exr", "c.exr", "d.hdr"}) fs::copy_file(kMap, in("maps/" + std::string(name)));
  write_manifest({"box-filter @/maps/*.exr -o '@/out/{stem} of {ext} {index}.npy' --radius 2",
                  "run-length encode \"@/maps/\"[d].hdr -o @/d.rle --raw"});
  expect_done(3, 0);
  for (const char* name : {"out/a b of exr 000000.npy", "out/c of exr 000001.npy", "d.rle"})
    EXPECT_TRUE(fs::exists(in(name))) << name;
  expect_done(0, 3);
  fs::copy_file(kMap, in("maps/e.exr"));
  expect_done(1, 3);
}

TEST_F(BatchJobs, ComeFromStandardInputAndAnswerAsTheyEnd) {
  write_manifest({"summed-area-table " + kMap + " -o @/sums.npy", "blur @/missing.exr -o @/b.exr --sigma 2"});
  const std::string command = "exec '" + test_program("cumulus").string() + "' --server " +
                              daemon_->address() + " batch - --json-lines --jobs 1 < '" + in("jobs.txt") +
                              "'";
  const Ended ended = Program("/bin/sh", {"-c", command}).wait();
  EXPECT_EQ(ended.exit_code, 1);
  std::istringstream lines(ended.output);
  std::vector<std::string> read;
  for (std::string line; std::getline(lines, line);) read.push_back(line);
  ASSERT_EQ(read.size(), 3U) << ended.output;
  EXPECT_EQ(Json(read[0]).text("state"), "done");
  EXPECT_EQ(Json(read[0]).number("line"), 1);
  EXPECT_EQ(Json(read[1]).text("state"), "failed");
  EXPECT_EQ(Json(read[2]).number("failed"), 1);
  EXPECT_NE(ended.errors.find("-:2: there is no file"), std::string::npos) << ended.errors;
}

TEST_F(BatchJobs, StopAtTheFirstFailureWhereThatIsWanted) {
  write_manifest({"blur @/missing.exr -o @/b.exr --sigma 2", "summed-area-table " + kMap + " -o @/sums.npy"});
  const Ended ended = batch({"--fail-fast", "--jobs", "1"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(Json(ended.output).number("not_run"), 1) << ended.output;
  EXPECT_FALSE(fs::exists(in("sums.npy")));
  EXPECT_EQ(batch({"--fail-fast", "--keep-going"}).exit_code, 2);
  EXPECT_EQ(batch({"--keep-going", "--jobs", "1"}).exit_code, 1);
  EXPECT_TRUE(fs::exists(in("sums.npy")));
}

TEST_F(BatchJobs, TellOfTheirProgressWhereThereIsNoTerminal) {
  write_manifest({"blur @/missing.exr -o @/b.exr --sigma 2",
                  "draw-samples " + kMap + " -n 5000000 -o @/s.npy",
                  "summed-area-table " + kMap + " -o @/sums.npy"});
  const Ended ended = batch({"--jobs", "1", "--progress", "0.01"});
  EXPECT_NE(ended.errors.find("cumulus: 1 of 3, 1 failed, "), std::string::npos) << ended.errors;
  EXPECT_NE(ended.errors.find(" left\n"), std::string::npos) << ended.errors;
}

/// What a program writes to a terminal, until `enough` says so; it is interrupted then.
template <class Enough>
std::string seen_on_a_terminal(const std::vector<std::string>& words, const Enough& enough) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int terminal = -1;
  const pid_t process = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (process == 0) {
    execv(arguments.front(), arguments.data());
    _exit(127);
  }
  std::string seen;
  std::array<char, 4096> part{};
  for (ssize_t count = 0; !enough(seen) && (count = read(terminal, part.data(), part.size())) > 0;)
    seen.append(part.data(), static_cast<std::size_t>(count));
  kill(process, SIGINT);
  while (read(terminal, part.data(), part.size()) > 0) {
  }
  close(terminal);
  waitpid(process, nullptr, 0);
  return seen;
}

TEST_F(BatchJobs, TellOfTheirProgressOnATerminal) {
  write_manifest({"blur @/missing.exr -o @/b.exr --sigma 2", "summed-area-table " + kMap + " -o @/sums.npy",
                  "draw-samples " + kMap + " -n 2000000000 -o @/s.npy"});
  const std::string line = "2 of 3, 1 failed, ";
  const std::string seen =
      seen_on_a_terminal({test_program("cumulus").string(), "--server", daemon_->address(), "batch",
                          in("jobs.txt"), "--jobs", "1"},
                         [&](const std::string& so_far) {
                           const std::size_t at = so_far.find(line);
                           return at != std::string::npos && so_far.find(" left", at) != std::string::npos;
                         });
  EXPECT_NE(seen.find("[##########"), std::string::npos) << seen;
  EXPECT_NE(seen.find(line), std::string::npos) << seen;
}

TEST_F(BatchJobs, SayOnceThatTheServerIsGone) {
  std::vector<std::string> lines;
  for (int i = 0; i < 30; ++i)
    lines.push_back("draw-samples " + kMap + " -n 2000000000 -o @/" + std::to_string(i) + ".npy");
  write_manifest(lines);
  Daemon daemon;
  Program program(test_program("cumulus"), {"--server", daemon.address(), "--wait-for-server", "1", "--json",
                                            "batch", in("jobs.txt"), "--jobs", "8"});
  std::this_thread::sleep_for(std::chrono::seconds(3));
  daemon.program().send(SIGKILL);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1) << ended.errors;
  EXPECT_NE(ended.errors.find("with 30 of 30 jobs not done"), std::string::npos) << ended.errors;
}

TEST_F(BatchJobs, AreCheckedWithoutBeingDone) {
  fs::copy_file(kMap, in("map.exr"));
  write_manifest(kChain);
  const Ended ended = batch({"--dry-run"});
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  const Json report(ended.output);
  EXPECT_EQ(report.number("done"), 2) << ended.output;
  EXPECT_EQ(report.number("not_run"), 2) << ended.output;  // what is to be read by them is not there yet
  for (const char* name : {"a table.cst", "once.exr", "jobs.txt.done"})
    EXPECT_FALSE(fs::exists(in(name))) << name;
}

TEST_F(BatchJobs, SendATreeOrATableOnce) {
  std::ofstream(in("cloud.ply"))
      << "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
         "end_header\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n";
  write_manifest({"sampling-table " + kMap + " -o @/map.cst", "kd-tree build @/cloud.ply -o @/tree.npz"});
  expect_done(2, 0);
  std::vector<std::string> lines;
  for (const std::string number : {"1", "2", "3"}) {
    lines.push_back("draw-samples @/map.cst -n 9 --seed " + number + " -o @/" + number + ".npy");
    lines.push_back("kd-tree query @/tree.npz @/cloud.ply -k " + number + " -o @/" + number + ".npz");
  }
  write_manifest(lines);
  const Ended ended = batch({"--jobs", "1"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  const Json report(ended.output);
  for (int i = 0; i < 6; ++i) {
    const std::string what = i % 2 == 0 ? ".report.table_was_resident" : ".report.tree_was_resident";
    EXPECT_EQ(report.flag("jobs." + std::to_string(i) + what), i > 1) << i;
  }
}

class NightlyBatchJobs : public BatchJobs {};

/// Expects that `count` jobs are done although their server is killed under them, and is away for a while.
void expect_jobs_to_outlive(std::chrono::seconds gap, int count, const std::string& folder) {
  {
    std::ofstream jobs(folder + "/jobs.txt");
    for (int i = 0; i < count; ++i)
      jobs << "draw-samples " << kMap << " -n 1000000 -o " << folder << "/" << i << ".npy\n";
  }
  RestartingDaemon daemon;
  Program batch(test_program("cumulus"),
                {"--server", daemon.target(), "--json", "batch", folder + "/jobs.txt"});
  for (int i = 0; i < 3000 && !fs::exists(folder + "/0.npy"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  daemon.end(SIGKILL);
  std::this_thread::sleep_for(gap);
  EXPECT_TRUE(batch.running());
  daemon.start();
  const Ended ended = batch.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  const Json report(ended.output);
  EXPECT_EQ(report.number("failed"), 0) << ended.output;
  EXPECT_EQ(report.number("done"), count) << ended.output;
}

TEST_F(BatchJobs, OutliveAShortAbsenceOfTheirServer) {
  expect_jobs_to_outlive(std::chrono::seconds(1), 8, folder_.path().string());
}

TEST_F(NightlyBatchJobs, OutliveAnAbsenceOfFiveSeconds) {
  expect_jobs_to_outlive(std::chrono::seconds(5), 24, folder_.path().string());
}

TEST_F(BatchJobs, NeedAServer) {
  write_manifest({"health"});
  const Ended ended = run_cumulus({"--server", "unix:/nonexistent/socket", "batch", in("jobs.txt")});
  EXPECT_EQ(ended.exit_code, 3) << ended.errors;
  EXPECT_EQ(run_cumulus({"--backend", "cpu", "batch", in("jobs.txt")}).exit_code, 0);
}

}  // namespace
}  // namespace cumulus::testing
