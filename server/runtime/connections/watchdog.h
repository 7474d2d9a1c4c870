#pragma once

#include <absl/time/time.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/runtime/listen_address.h"

namespace cumulus::server {

/// Whether an HTTP/2 server answers at `address` within `limit`, or at least takes the connection and closes
/// it, as one does that is full. Of TLS, whether the handshake is answered.
bool answers(const ListenAddress& address, absl::Duration limit, bool tls = false);

/// Connects to the addresses that this process serves, from time to time. A server that takes no connection
/// any more, for whatever reason, is of use to nobody, and does not notice. While nobody calls, and it has
/// answered, it looks less often: that takes some milliseconds of an idle process.
class Watchdog {
 public:
  struct Limits {
    absl::Duration interval;  // between two looks, and how long an answer may take
    int failures = 3;         // in a row
    bool tls = false;         // on TCP
    int quiet_intervals = 4;  // between two looks while nobody calls, in the end
  };
  /// Calls `deaf`, once, with the address that did not answer. `calls`: how many there have been.
  Watchdog(std::vector<ListenAddress> addresses, const Limits& limits,
           std::function<void(const std::string& address)> deaf, std::function<std::uint64_t()> calls);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void run();
  bool sleep(absl::Duration time);

  const std::vector<ListenAddress> addresses_;
  const Limits limits_;
  const std::function<void(const std::string&)> deaf_;
  const std::function<std::uint64_t()> calls_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cumulus::server
