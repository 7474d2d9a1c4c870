#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "cumulus/decoding/v1/decoding.pb.h"
#include "server/runtime/decode/channel.h"

namespace cumulus::server {

/// A small process that starts decode workers: it was forked while this process had neither threads nor
/// connections nor a GPU, loads an image module with the first worker that needs it, and forks a worker for
/// each image. Thread-safe.
class DecodeHelper {
 public:
  /// Forks. Call it before any thread exists. It lives as long as what is returned.
  static absl::StatusOr<std::shared_ptr<DecodeHelper>> start();
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
  };
  /// A worker that waits for its image, of the format `reader`, confined and bounded. UNIMPLEMENTED where the
  /// image module cannot be loaded.
  absl::StatusOr<Worker> start_worker(const std::string& reader, const Bounds& bounds);
  /// From now on the worker may map `bytes` more.
  absl::Status raise_memory(const Worker& worker, std::size_t bytes);
  /// Each worker is either dismissed, which ends it soon, or ended, which waits until it is gone and takes
  /// long where it has much memory. Its status is as waitpid has it.
  void dismiss_worker(const Worker& worker);
  int end_worker(const Worker& worker);

 private:
  DecodeHelper(Channel channel, pid_t id) : channel_(std::move(channel)), id_(id) {}
  decoding::v1::Reply ask(const decoding::v1::Order& order, const Descriptor& file = {});

  std::mutex mutex_;  // one order at a time
  Channel channel_;
  const pid_t id_;
};

}  // namespace cumulus::server
