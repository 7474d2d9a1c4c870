#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  /// What the last call of exactly that prediction took, in seconds: the same call comes again and again.
  /// Empty where that is too long ago to be known.
  std::optional<double> last_of(std::string_view operation, double predicted) const;

 private:
  struct Call {
    double predicted = 0;
    double measured = 0;
  };
  struct Kept : Record {
    std::vector<Call> latest;  // of different predictions, the newest first
  };
  static constexpr std::size_t kLatest = 16;

  mutable std::mutex mutex_;
  std::map<std::string, Kept, std::less<>> records_;
};

}  // namespace cumulus::server
