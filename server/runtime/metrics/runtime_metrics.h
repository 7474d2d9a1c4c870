#pragma once

#include <absl/time/time.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "server/runtime/runtime.h"

namespace cumulus::server {

/// What the runtime has and does at the moment of a scrape: devices, queues, memory, sessions, the process.
/// None of its labels grows with clients.
class RuntimeMetrics final : public prometheus::Collectable {
 public:
  struct Sources {
    std::function<std::size_t()> connections;  // open ones
    std::function<bool()> serving;             // what health says
    /// When the certificate that is shown ends; of a server with TLS.
    std::function<absl::Time()> certificate_expiry = {};
    /// Of files that are read anew when they change, whether what they hold now can be used.
    std::function<std::vector<std::pair<std::string, bool>>()> usable_files = {};
  };
  RuntimeMetrics(Runtime& runtime, Sources sources) : runtime_(runtime), sources_(std::move(sources)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  void add_devices(std::vector<prometheus::MetricFamily>& families) const;
  void add_sessions(std::vector<prometheus::MetricFamily>& families) const;
  void add_files(std::vector<prometheus::MetricFamily>& families) const;
  void add_process(std::vector<prometheus::MetricFamily>& families) const;

  Runtime& runtime_;
  const Sources sources_;
};

}  // namespace cumulus::server
