#pragma once

#include <absl/time/time.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/job/report.h"

namespace cumulus::cli {

/// What a command is doing, stage by stage, and how long each took. On a terminal a stage that lasts
/// longer than a second shows a bar on standard error; in a pipe nothing is shown.
class Stages {
 public:
  enum class Bars { kOnTerminal, kNever };

  explicit Stages(Bars bars = Bars::kOnTerminal);
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
  ~Stages();

  /// Ends the stage before, if any, and begins this one.
  void begin(const std::string& name);
  /// How far the stage is; called from any thread.
  void advance(std::int64_t done, std::int64_t total);
  void end();
  /// Says more of the stage that has begun than how far it is: `note`, which is called from another thread,
  /// is shown behind the bar and, where there is no terminal, as a line once in each `interval`.
  void annotate(std::function<std::string()> note, absl::Duration interval);
  /// Writes a line to standard error, where the bar is no hindrance.
  void interject(const std::string& line);

  /// How long the ended stages of that name took.
  absl::Duration of(const std::string& name) const;
  /// Seconds of each stage that has ended, of all that had the same name, and in all.
  Report seconds() const;

 private:
  void end_locked();
  void draw_until_stopped();
  void tell_until_stopped(absl::Duration interval);
  void draw();
  void erase();

  const absl::Time start_;
  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, absl::Duration>> ended_;
  std::string name_;
  absl::Time stage_start_;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
  bool drawn_ = false;
  std::function<std::string()> note_;

  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread painter_;
};

}  // namespace cumulus::cli
