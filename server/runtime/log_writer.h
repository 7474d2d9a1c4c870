#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace cumulus::server {

/// Writes lines to a file, pipe or terminal from a thread of its own, so that a reader that has stopped holds
/// up nobody. What waits is bounded. Lines beyond the bound, and lines that cannot be written, are dropped
/// and counted. SIGPIPE must be ignored where the reader of a pipe may go away.
class LogWriter {
 public:
  /// A whole line that says how many were dropped; written when there is room again. `error`: why the file
  /// took none of them, as errno has it, or 0 where its reader was slow.
  using DroppedLine = std::function<std::string(std::uint64_t count, int error)>;

  /// Takes over the descriptor `file`.
  LogWriter(int file, std::size_t max_pending_bytes, DroppedLine dropped_line);
  /// Writes what can be written without waiting for the reader.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// `line` ends with its line break. Never waits for the reader.
  void push(std::string_view line);
  /// What is pushed from now on goes to `file`, which it takes over.
  void switch_to(int file);
  /// Waits until nothing is pending; false where `limit` is over first.
  bool flush(std::chrono::milliseconds limit);
  /// Since the start.
  std::uint64_t dropped() const;

 private:
  void run();
  /// The first line. The lock is held before and after.
  void write_next(std::unique_lock<std::mutex>& lock);
  bool half_full() const { return pending_bytes_ > max_pending_bytes_ / 2; }
  void adopt_next_file();
  bool write_line(std::string_view line);
  bool write_all(std::string_view text);
  bool wait_for_room() const;

  const std::size_t max_pending_bytes_;
  const DroppedLine dropped_line_;
  int file_;              // the thread's own, as are the next two
  int error_ = 0;         // of the last write that failed, until what it dropped has been told
  bool in_line_ = false;  // the file ends within a line
  std::atomic<int> next_file_{-1};
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<std::string> lines_;
  bool writing_ = false;           // the thread looks for lines without being woken
  std::size_t pending_bytes_ = 0;  // of lines_ and of the line that is being written
  std::uint64_t dropped_ = 0;
  std::uint64_t unsaid_ = 0;  // of dropped_, what no line has told yet
  std::thread thread_;
};

}  // namespace cumulus::server
