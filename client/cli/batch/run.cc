#include "cli/batch/run.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "cli/app/invocation.h"

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

}  // namespace

BatchRun::BatchRun(const std::string& manifest, const std::vector<ManifestJob>& jobs, BatchRecord& record,
                   Job& batch)
    : manifest_(manifest), jobs_(jobs), record_(record), batch_(batch), progress_(jobs.size()) {}

void BatchRun::run(int workers) {
  batch_.stages().begin("jobs");
  batch_.stages().advance(0, static_cast<std::int64_t>(jobs_.size()));
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) threads.emplace_back([this] { work(); });
  for (std::thread& thread : threads) thread.join();
  batch_.stages().end();
}

std::size_t BatchRun::count(State state) const {
  return static_cast<std::size_t>(std::count_if(progress_.begin(), progress_.end(),
                                                [&](const Progress& job) { return job.state == state; }));
}

std::vector<Report> BatchRun::reports() const {
  std::vector<Report> reports;
  for (std::size_t index = 0; index < jobs_.size(); ++index) {
    const Progress& progress = progress_[index];
    Report report;
    report.add("line", jobs_[index].line);
    report.add("state", name_of(progress.state));
    report.add("command", jobs_[index].text);
    if (!progress.error.empty()) report.add("error", progress.error);
    if (progress.state == State::kDone) {
      report.add("seconds", absl::ToDoubleSeconds(progress.lasted));
      if (batch_.json()) report.add("report", progress.report);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

void BatchRun::work() {
  std::unique_lock lock(mutex_);
  while (!batch_.interrupted()) {
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
      if (!is_over(state) || ended_well(state)) continue;
      end(index, State::kNotRun, absl::StrCat("it needs line ", jobs_[earlier].line, ", which is not done"));
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
  const bool kept = record_.holds(line);
  const std::unique_ptr<Job> job = Job::beside(batch_);
  const absl::Time start = absl::Now();
  absl::Status status = kept ? absl::OkStatus() : line.invocation->run(*job);
  const absl::Duration lasted = absl::Now() - start;
  if (status.ok() && !kept) status = record_.add(line);
  lock.lock();
  progress.lasted = lasted;
  progress.report = job->report();
  if (status.ok()) {
    end(index, kept ? State::kKept : State::kDone, "");
  } else if (absl::IsCancelled(status) && batch_.interrupted()) {
    end(index, State::kNotRun, "interrupted");
  } else {
    end(index, State::kFailed, line.invocation->explain(status));
  }
}

void BatchRun::end(std::size_t index, State state, const std::string& error) {
  progress_[index].state = state;
  progress_[index].error = error;
  if (!error.empty() && !batch_.interrupted())
    batch_.stages().interject(absl::StrCat("cumulus: ", manifest_, ":", jobs_[index].line, ": ", error));
  batch_.stages().advance(static_cast<std::int64_t>(++over_), static_cast<std::int64_t>(jobs_.size()));
  wake_.notify_all();
}

}  // namespace cumulus::cli
