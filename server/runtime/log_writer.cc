#include "server/runtime/log_writer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace cumulus::server {
namespace {

/// Where lines come one after another, they are written so far apart, so that not each wakes the thread.
constexpr std::chrono::milliseconds kLinger{2};

}  // namespace

LogWriter::LogWriter(int file, std::size_t max_pending_bytes, DroppedLine dropped_line)
    : max_pending_bytes_(max_pending_bytes),
      dropped_line_(std::move(dropped_line)),
      file_(file),
      thread_([this] { run(); }) {}

LogWriter::~LogWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  adopt_next_file();
  ::close(file_);
}

void LogWriter::push(std::string_view line) {
  std::string copy(line);
  {
    const std::lock_guard lock(mutex_);
    if (pending_bytes_ + copy.size() > max_pending_bytes_) {
      ++dropped_;
      ++unsaid_;
      return;
    }
    pending_bytes_ += copy.size();
    lines_.push_back(std::move(copy));
    if (writing_ && !half_full()) return;  // it looks again
  }
  wake_.notify_one();
}

void LogWriter::switch_to(int file) {
  const int unused = next_file_.exchange(file);
  if (unused >= 0) ::close(unused);
}

bool LogWriter::flush(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, limit, [this] { return pending_bytes_ == 0; });
}

std::uint64_t LogWriter::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void LogWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    writing_ = false;
    wake_.wait(lock, [this] { return stopping_ || !lines_.empty(); });
    if (lines_.empty()) return;
    writing_ = true;
    while (!lines_.empty()) {
      while (!lines_.empty()) write_next(lock);
      wake_.wait_for(lock, kLinger, [this] { return stopping_ || half_full(); });
    }
  }
}

void LogWriter::write_next(std::unique_lock<std::mutex>& lock) {
  const std::string line = std::move(lines_.front());
  lines_.pop_front();
  // Half empty: said at the first free byte, a long loss would be told as many short ones.
  const std::uint64_t to_say = half_full() ? 0 : unsaid_;
  lock.unlock();
  adopt_next_file();
  const bool written = write_line(line);
  const bool said = written && to_say > 0 && write_line(dropped_line_(to_say, error_));
  lock.lock();
  pending_bytes_ -= line.size();
  if (!written) {
    ++dropped_;
    ++unsaid_;
  }
  if (said) {
    unsaid_ -= to_say;
    error_ = 0;
  }
  if (pending_bytes_ == 0) idle_.notify_all();
}

void LogWriter::adopt_next_file() {
  const int next = next_file_.exchange(-1);
  if (next < 0) return;
  ::close(file_);
  file_ = next;
  in_line_ = false;
}

bool LogWriter::write_line(std::string_view line) {
  // Of the line before, a disk that became full may have taken a part.
  return (!in_line_ || write_all("\n")) && write_all(line);
}

bool LogWriter::write_all(std::string_view text) {
  // A pipe that poll calls writable takes that much without blocking. (The descriptor itself cannot be made
  // non-blocking: standard error is shared with other programs.)
  constexpr std::size_t kMaxWrite = PIPE_BUF;
  while (!text.empty()) {
    if (!wait_for_room()) return false;
    const ssize_t count = ::write(file_, text.data(), std::min(text.size(), kMaxWrite));
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
      error_ = errno;
      return false;
    }
    if (count <= 0) continue;
    const auto written = static_cast<std::size_t>(count);
    in_line_ = text[written - 1] != '\n';
    text.remove_prefix(written);
  }
  return true;
}

bool LogWriter::wait_for_room() const {
  constexpr int kStepMilliseconds = 50;  // how late the end, or another file, is noticed
  pollfd entry{file_, POLLOUT, 0};
  while (::poll(&entry, 1, stopping_ ? 0 : kStepMilliseconds) <= 0) {
    if (stopping_ || next_file_ >= 0) return false;
  }
  return true;
}

}  // namespace cumulus::server
