#pragma once

#include <absl/time/time.h>

#include <condition_variable>
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
/// any more, for whatever reason, is of use to nobody, and does not notice.
class Watchdog {
 public:
  struct Limits {
    absl::Duration interval;  // between two looks, and how long an answer may take
    int failures = 3;         // in a row
    bool tls = false;         // on TCP
  };
  /// Calls `deaf`, once, with the address that did not answer.
  Watchdog(std::vector<ListenAddress> addresses, const Limits& limits,
           std::function<void(const std::string& address)> deaf);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void run();
  bool sleep();

  const std::vector<ListenAddress> addresses_;
  const Limits limits_;
  const std::function<void(const std::string&)> deaf_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cumulus::server
