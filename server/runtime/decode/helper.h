#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "server/runtime/decode/channel.h"

namespace cumulus::server {

/// The first thing that a program does which decodes images: a process that DecodeHelper started becomes its
/// helper here, and does not return.
void become_decode_helper_if_started_as_one();

/// Starts decode workers by a small process, the helper: this program, executed anew under another name. It
/// loads an image module with the first image that needs it and forks a worker for each image. It is started
/// for the first image, and anew for the next one where it has ended. Thread-safe.
class DecodeHelper {
  class Process;

 public:
  /// A helper that does not answer for so long is ended; it loads its libraries in less than a second.
  static constexpr absl::Duration kAnswerLimit = absl::Minutes(1);

  explicit DecodeHelper(absl::Duration answer_limit = kAnswerLimit);
  ~DecodeHelper();
  DecodeHelper(const DecodeHelper&) = delete;
  DecodeHelper& operator=(const DecodeHelper&) = delete;

  struct Bounds {
    std::size_t working_bytes = 0;  // that it may map
    absl::Duration processor_time;
  };
  struct Worker {
    pid_t id = -1;
    Channel channel;
    std::shared_ptr<Process> helper;  // with which it ends
  };
  /// A worker that waits for its image, of the format `reader`, confined and bounded. UNIMPLEMENTED where the
  /// image module cannot be loaded.
  absl::StatusOr<Worker> start_worker(const std::string& reader, const Bounds& bounds);
  /// From now on the worker may map `bytes` more.
  static absl::Status raise_memory(const Worker& worker, std::size_t bytes);
  /// Each worker is either dismissed, which ends it soon, or ended, which waits until it is gone and takes
  /// long where it has much memory. Its status is as waitpid has it; UNAVAILABLE where the helper has ended,
  /// and its workers with it.
  static void dismiss_worker(const Worker& worker);
  static absl::StatusOr<int> end_worker(const Worker& worker);

 private:
  absl::StatusOr<std::shared_ptr<Process>> running_process();
  void forget(const std::shared_ptr<Process>& process);

  const absl::Duration answer_limit_;
  std::mutex mutex_;
  std::shared_ptr<Process> process_;  // null: the next image starts one
};

}  // namespace cumulus::server
