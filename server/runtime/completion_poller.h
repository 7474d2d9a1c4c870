#pragma once

#include <absl/time/time.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/core/cuda_executor.h"
#include "server/runtime/device.h"
#include "server/runtime/expected_end.h"

namespace cumulus::server {

/// One thread that waits for points in a GPU's streams and says when each is reached.
class CompletionPoller {
 public:
  explicit CompletionPoller(Device& device);
  /// Waits for what is still outstanding.
  ~CompletionPoller();
  CompletionPoller(const CompletionPoller&) = delete;
  CompletionPoller& operator=(const CompletionPoller&) = delete;

  /// Calls `done` on the poller's thread once `stream` has reached this point, which is `expected` to take so
  /// long; infinite where nobody knows.
  void watch(CUstream_st* stream, absl::Duration expected, Done done);

 private:
  struct Watched {
    CudaEvent event;
    Done done;
    ExpectedEnd end;
  };

  void run();
  /// Moves what has been reached from `watched` to `reached`, with its status.
  void collect(std::vector<Watched>& watched);

  Device& device_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Watched> incoming_;
  std::vector<CudaEvent> spare_events_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cumulus::server
