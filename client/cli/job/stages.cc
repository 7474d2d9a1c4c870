#include "cli/job/stages.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "proto/steady_time.h"

namespace cumulus::cli {

Stages::Stages(Bars bars) : start_(steady_now()) {
  if (bars == Bars::kOnTerminal && isatty(STDERR_FILENO) == 1)
    painter_ = std::thread([this] { draw_until_stopped(); });
}

Stages::~Stages() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    erase();
  }
  wake_.notify_all();
  if (painter_.joinable()) painter_.join();
}

void Stages::begin(const std::string& name) {
  const std::lock_guard lock(mutex_);
  end_locked();
  name_ = name;
  stage_start_ = steady_now();
  done_ = 0;
  total_ = 0;
}

void Stages::advance(std::int64_t done, std::int64_t total) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  total_ = total;
}

void Stages::end() {
  const std::lock_guard lock(mutex_);
  end_locked();
}

void Stages::annotate(std::function<std::string()> note, absl::Duration interval) {
  const std::lock_guard lock(mutex_);
  note_ = std::move(note);
  if (painter_.joinable() || interval <= absl::ZeroDuration()) return;
  painter_ = std::thread([this, interval] { tell_until_stopped(interval); });
}

void Stages::interject(const std::string& line) {
  const std::lock_guard lock(mutex_);
  erase();
  std::fputs((line + "\n").c_str(), stderr);
}

void Stages::end_locked() {
  if (name_.empty()) return;
  const absl::Duration lasted = steady_now() - stage_start_;
  const auto same =
      std::find_if(ended_.begin(), ended_.end(), [&](const auto& stage) { return stage.first == name_; });
  if (same == ended_.end()) {
    ended_.emplace_back(name_, lasted);
  } else {
    same->second += lasted;
  }
  name_.clear();
  note_ = nullptr;
  erase();
}

absl::Duration Stages::of(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [ended, duration] : ended_) {
    if (ended == name) return duration;
  }
  return absl::ZeroDuration();
}

Report Stages::seconds() const {
  const std::lock_guard lock(mutex_);
  Report seconds;
  for (const auto& [name, duration] : ended_) seconds.add(name, absl::ToDoubleSeconds(duration));
  seconds.add("total", absl::ToDoubleSeconds(steady_now() - start_));
  return seconds;
}

void Stages::draw_until_stopped() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    wake_.wait_for(lock, std::chrono::milliseconds(100));
    if (!stopped_ && !name_.empty() && steady_now() - stage_start_ > absl::Seconds(1)) draw();
  }
}

void Stages::tell_until_stopped(absl::Duration interval) {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    wake_.wait_for(lock, absl::ToChronoNanoseconds(interval));
    if (!stopped_ && note_) std::fputs(absl::StrCat("cumulus: ", note_(), "\n").c_str(), stderr);
  }
}

void Stages::draw() {
  constexpr int kWidth = 40;
  const double fraction = total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 0.0;
  const int filled = std::clamp(static_cast<int>(fraction * kWidth), 0, kWidth);
  std::string line = absl::StrFormat("\r%-10s ", name_);
  if (total_ > 0) {
    line += '[' + std::string(static_cast<std::size_t>(filled), '#') +
            std::string(static_cast<std::size_t>(kWidth - filled), '.') +
            (note_ ? "]" : absl::StrFormat("] %3.0f %%", 100 * fraction));
  }
  if (note_) {
    absl::StrAppend(&line, " ", note_(), "\033[K");
  } else {
    line += absl::StrFormat(" %.1f s\033[K", absl::ToDoubleSeconds(steady_now() - stage_start_));
  }
  std::fputs(line.c_str(), stderr);
  drawn_ = true;
}

void Stages::erase() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace cumulus::cli
