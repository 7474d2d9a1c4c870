#include "cli/batch/run.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>
#include <utility>

#include "cli/app/invocation.h"
#include "proto/steady_time.h"

namespace cumulus::cli {
namespace {

using State = BatchRun::State;

const char* name_of(State state) {
  switch (state) {
    case State::kDone:
      return "done";
    case State::kKept:
      return "kept";
    case State::kFailed:
      return "failed";
    default:
      return "not run";
  }
}

bool ended_well(State state) { return state == State::kDone || state == State::kKept; }
bool is_over(State state) { return state != State::kWaiting && state != State::kRunning; }

/// "40 s", "12 min", "3 h".
std::string rounded(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 60 * kMinute;
  if (seconds < 2 * kMinute) return absl::StrCat(std::ceil(seconds), " s");
  if (seconds < 2 * kHour) return absl::StrCat(std::ceil(seconds / kMinute), " min");
  return absl::StrCat(std::ceil(seconds / kHour), " h");
}

}  // namespace

BatchRun::BatchRun(BatchOptions options, const std::vector<ManifestJob>& jobs, BatchRecord& record,
                   Job& batch)
    : options_(std::move(options)), jobs_(jobs), record_(record), batch_(batch), progress_(jobs.size()) {}

void BatchRun::run() {
  start_ = steady_now();
  batch_.stages().begin("jobs");
  batch_.stages().annotate([this] { return progress(); }, options_.progress);
  batch_.stages().advance(0, static_cast<std::int64_t>(jobs_.size()));
  std::vector<std::thread> threads;
  const int workers = std::min(options_.workers, static_cast<int>(jobs_.size()));
  for (int worker = 0; worker < workers; ++worker) threads.emplace_back([this] { work(); });
  for (std::thread& thread : threads) thread.join();
  batch_.stages().end();
}

std::string BatchRun::progress() const {
  const std::size_t over = over_;
  const std::size_t kept = std::min<std::size_t>(kept_, over);
  std::string text = absl::StrCat(over, " of ", jobs_.size());
  if (failed_ > 0) absl::StrAppend(&text, ", ", failed_.load(), " failed");
  if (over == kept) return text;  // none that took time has ended yet
  const double each = absl::ToDoubleSeconds(steady_now() - start_) / static_cast<double>(over - kept);
  return absl::StrCat(text, ", ", rounded(each * static_cast<double>(jobs_.size() - over)), " left");
}

std::size_t BatchRun::count(State state) const {
  return static_cast<std::size_t>(std::count_if(progress_.begin(), progress_.end(),
                                                [&](const Progress& job) { return job.state == state; }));
}

Report BatchRun::describe(std::size_t index) const {
  const Progress& progress = progress_[index];
  Report report;
  if (jobs_[index].line > 0) report.add("line", jobs_[index].line);
  report.add("state", name_of(progress.state));
  report.add("command", jobs_[index].text);
  if (!progress.error.empty()) report.add("error", progress.error);
  if (progress.state == State::kDone) {
    report.add("seconds", absl::ToDoubleSeconds(progress.lasted));
    if (batch_.json()) report.add("report", progress.report);
  }
  return report;
}

std::vector<Report> BatchRun::reports() const {
  std::vector<Report> reports;
  for (std::size_t index = 0; index < jobs_.size(); ++index) reports.push_back(describe(index));
  return reports;
}

bool BatchRun::stops() const {
  return batch_.interrupted() || !server_lost_.ok() || (options_.fail_fast && failed_ > 0);
}

void BatchRun::work() {
  std::unique_lock lock(mutex_);
  while (!stops()) {
    give_up_dependents();
    const std::size_t index = next();
    if (index < jobs_.size()) {
      run_one(index, lock);
    } else if (waits()) {
      wake_.wait(lock);  // for what another thread is running
    } else {
      return;
    }
  }
}

void BatchRun::give_up_dependents() {
  for (std::size_t index = 0; index < jobs_.size(); ++index) {
    if (progress_[index].state != State::kWaiting) continue;
    for (const std::size_t earlier : jobs_[index].after) {
      const State state = progress_[earlier].state;
      const bool there = ended_well(state) && !(batch_.dry_run() && state == State::kDone);
      if (!is_over(state) || there) continue;
      const std::string what =
          jobs_[earlier].line > 0 ? absl::StrCat("line ", jobs_[earlier].line) : jobs_[earlier].text;
      end(index, State::kNotRun, absl::StrCat("it needs ", what, ", which is not done"));
      break;
    }
  }
}

bool BatchRun::may_begin(std::size_t index) const {
  const std::vector<std::size_t>& after = jobs_[index].after;
  return progress_[index].state == State::kWaiting &&
         std::all_of(after.begin(), after.end(),
                     [&](std::size_t earlier) { return is_over(progress_[earlier].state); });
}

std::size_t BatchRun::next() const {
  std::size_t index = 0;
  while (index < jobs_.size() && !may_begin(index)) ++index;
  return index;
}

bool BatchRun::waits() const {
  return std::any_of(progress_.begin(), progress_.end(),
                     [](const Progress& job) { return job.state == State::kWaiting; });
}

void BatchRun::run_one(std::size_t index, std::unique_lock<std::mutex>& lock) {
  Progress& progress = progress_[index];
  progress.state = State::kRunning;
  lock.unlock();
  const ManifestJob& line = jobs_[index];
  if (record_.holds(line)) {
    lock.lock();
    end(index, State::kKept, "");
    return;
  }
  const std::unique_ptr<Job> job = Job::beside(batch_);
  const absl::Time start = steady_now();
  const auto invocation = read_invocation(line.words);
  absl::Status status = invocation.ok() ? (*invocation)->run(*job) : invocation.status();
  const absl::Duration lasted = steady_now() - start;
  const std::string error = invocation.ok() ? (*invocation)->explain(status) : std::string(status.message());
  if (status.ok() && !batch_.dry_run()) status = record_.add(line);
  lock.lock();
  progress.lasted = lasted;
  progress.report = job->report();
  conclude(index, status, error);
}

void BatchRun::conclude(std::size_t index, const absl::Status& status, const std::string& error) {
  if (status.ok()) {
    end(index, State::kDone, "");
  } else if (absl::IsCancelled(status) && batch_.interrupted()) {
    end(index, State::kNotRun, "interrupted");
  } else if (is_server_gone(status)) {
    if (server_lost_.ok()) server_lost_ = status;
    end(index, State::kNotRun, "the server is gone");
  } else {
    ++failed_;
    end(index, State::kFailed, error.empty() ? std::string(status.message()) : error);
  }
}

void BatchRun::end(std::size_t index, State state, const std::string& error) {
  progress_[index].state = state;
  progress_[index].error = error;
  const bool one_of_many = batch_.interrupted() || !server_lost_.ok();  // which is said once, at the end
  if (!error.empty() && !one_of_many)
    batch_.stages().interject(
        absl::StrCat("cumulus: ", place_of(options_.manifest, jobs_[index]), ": ", error));
  if (state == State::kKept) ++kept_;
  batch_.stages().advance(static_cast<std::int64_t>(++over_), static_cast<std::int64_t>(jobs_.size()));
  if (options_.json_lines) {
    std::fputs((describe(index).to_json() + "\n").c_str(), stdout);
    std::fflush(stdout);
  }
  wake_.notify_all();
}

}  // namespace cumulus::cli
