#pragma once

#include <absl/time/time.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "cli/batch/manifest.h"
#include "cli/batch/record.h"
#include "cli/job/job.h"
#include "cli/job/report.h"

namespace cumulus::cli {

/// How a batch goes about its jobs.
struct BatchOptions {
  std::string manifest = {};  // for messages
  int workers = 1;
  bool fail_fast = false;   // begin no job after one has failed
  bool json_lines = false;  // print a line of JSON as each job ends
  absl::Duration progress =
      absl::Seconds(10);  // between two lines of it, where there is no terminal; 0: none
};

/// The jobs of a manifest, several at a time, each once those are over that it has to wait for.
class BatchRun {
 public:
  /// `jobs` and `record` outlive this object. What goes wrong with a job is said as it happens, with its
  /// place before it.
  BatchRun(BatchOptions options, const std::vector<ManifestJob>& jobs, BatchRecord& record, Job& batch);

  /// Returns when all are over, or after an interrupt, or without the server, those that were running. A job
  /// that fails holds up only those that wait for it, unless fail_fast.
  void run();

  enum class State { kWaiting, kRunning, kDone, kKept, kFailed, kNotRun };
  std::size_t count(State state) const;
  /// Of each job: its line, its text, what became of it, and its own report.
  std::vector<Report> reports() const;
  /// What a job found in the server's place, once it was gone; OK while it was there.
  const absl::Status& server_lost() const { return server_lost_; }

 private:
  struct Progress {
    State state = State::kWaiting;
    std::string error;
    absl::Duration lasted;
    Report report;
  };

  void work();
  bool may_begin(std::size_t index) const;
  /// Whether no further job is to be begun. The caller has the lock, here and below.
  bool stops() const;
  /// Gives up what waits for a job that did not end well.
  void give_up_dependents();
  /// The first that may begin, if any.
  std::size_t next() const;
  bool waits() const;
  void run_one(std::size_t index, std::unique_lock<std::mutex>& lock);
  void conclude(std::size_t index, const absl::Status& status, const std::string& error);
  void end(std::size_t index, State state, const std::string& error);
  Report describe(std::size_t index) const;
  /// "12 of 300, 2 failed, 40 s left". From any thread, without the lock.
  std::string progress() const;

  const BatchOptions options_;
  const std::vector<ManifestJob>& jobs_;
  BatchRecord& record_;
  Job& batch_;
  absl::Time start_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Progress> progress_;
  absl::Status server_lost_;
  std::atomic<std::size_t> over_ = 0;
  std::atomic<std::size_t> kept_ = 0;
  std::atomic<std::size_t> failed_ = 0;
};

}  // namespace cumulus::cli
