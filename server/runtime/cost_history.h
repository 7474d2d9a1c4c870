#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace cumulus::server {

/// What an operation's calls took on one device, against what their plans' closed forms had predicted.
/// Thread-safe.
class CostHistory {
 public:
  struct Record {
    double ratio = 1;  // measured to predicted, of recent calls
    std::uint64_t calls = 0;
    double last_prediction = 0;  // of the last call, in seconds, corrected by those before it
    double last_measured = 0;
  };

  /// `seconds`, as a closed form predicts them, corrected by the operation's history.
  double corrected(std::string_view operation, double seconds) const;
  /// A call for which the closed form predicted `predicted` seconds has taken `measured`.
  void record(std::string_view operation, double predicted, double measured);
  Record of(std::string_view operation) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Record, std::less<>> records_;
};

}  // namespace cumulus::server
