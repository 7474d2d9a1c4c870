#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>
#include <sys/stat.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cumulus::server {

/// Files, and the state that they had when they were last marked.
class WatchedFiles {
 public:
  /// Marks them, to be read after that: what changes meanwhile is noticed. Empty names are none.
  explicit WatchedFiles(std::vector<std::string> names) : names_(std::move(names)), marks_(marks()) {}

  bool changed() const { return marks() != marks_; }
  void mark() { marks_ = marks(); }

 private:
  /// What tells one state of a file from another.
  struct Mark {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = -1;
    timespec modified{};
    bool operator==(const Mark& other) const;
  };
  std::vector<Mark> marks() const;

  std::vector<std::string> names_;
  std::vector<Mark> marks_;
};

/// Notices that files have changed, and has them read anew. What it does, and what went wrong, is in the log.
class Reloader {
 public:
  struct Subject {
    std::string what;  // "tokens", for the log
    WatchedFiles files;
    std::function<absl::Status()> reload;
    bool usable = true;  // what was read last of all
  };

  Reloader(std::vector<Subject> subjects, absl::Duration interval);
  ~Reloader();
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  /// Reads everything anew, whether it seems changed or not. Returns when that is done.
  void reload_all();
  /// Of each of the subjects, whether its files could be used when they were read last of all.
  std::vector<std::pair<std::string, bool>> usable() const;

 private:
  static void reload(Subject& subject);
  void run();

  const absl::Duration interval_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::vector<Subject> subjects_;
  std::thread thread_;
};

}  // namespace cumulus::server
