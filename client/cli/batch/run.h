#pragma once

#include <absl/time/time.h>

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

/// The jobs of a manifest, several at a time, each once those are over that it has to wait for.
class BatchRun {
 public:
  /// `jobs` and `record` outlive this object. What goes wrong with a job is said as it happens, with
  /// `manifest` and its line before it.
  BatchRun(const std::string& manifest, const std::vector<ManifestJob>& jobs, BatchRecord& record,
           Job& batch);

  /// Returns when all are over, or after an interrupt those that were running. A job that fails holds up only
  /// those that wait for it.
  void run(int workers);

  enum class State { kWaiting, kRunning, kDone, kKept, kFailed, kNotRun };
  std::size_t count(State state) const;
  /// Of each job: its line, its text, what became of it, and its own report.
  std::vector<Report> reports() const;

 private:
  struct Progress {
    State state = State::kWaiting;
    std::string error;
    absl::Duration lasted;
    Report report;
  };

  void work();
  bool may_begin(std::size_t index) const;
  /// Gives up what waits for a job that did not end well. The caller has the lock, here and below.
  void give_up_dependents();
  /// The first that may begin, if any.
  std::size_t next() const;
  bool waits() const;
  void run_one(std::size_t index, std::unique_lock<std::mutex>& lock);
  void end(std::size_t index, State state, const std::string& error);

  const std::string& manifest_;
  const std::vector<ManifestJob>& jobs_;
  BatchRecord& record_;
  Job& batch_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Progress> progress_;
  std::size_t over_ = 0;
};

}  // namespace cumulus::cli
