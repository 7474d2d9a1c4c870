#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>
#include <sys/stat.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace cumulus::server {

/// Notices that files have changed, and has them read anew. What it does, and what went wrong, is in the log.
class Reloader {
 public:
  struct Subject {
    std::string what;                // "tokens", for the log
    std::vector<std::string> files;  // empty names are none
    std::function<absl::Status()> reload;
  };

  Reloader(std::vector<Subject> subjects, absl::Duration interval);
  ~Reloader();
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  /// Reads everything anew, whether it seems changed or not. Returns when that is done.
  void reload_all();

 private:
  /// What tells one state of a file from another.
  struct Mark {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = -1;
    timespec modified{};
    bool operator==(const Mark& other) const;
  };
  struct Watched {
    Subject subject;
    std::vector<Mark> marks;
  };

  static std::vector<Mark> marks_of(const Subject& subject);
  static void reload(Watched& watched);
  void run();

  const absl::Duration interval_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::vector<Watched> watched_;
  std::thread thread_;
};

}  // namespace cumulus::server
