#include "server/runtime/metrics/runtime_metrics.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "server/runtime/logging.h"
#include "server/runtime/metrics/process_figures.h"
#include "server/version.h"

namespace cumulus::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Families = std::vector<MetricFamily>;
using Labels = std::vector<ClientMetric::Label>;

MetricFamily gauge(std::string name, std::string help) {
  return {std::move(name), std::move(help), MetricType::Gauge, {}};
}

MetricFamily counter(std::string name, std::string help) {
  return {std::move(name), std::move(help), MetricType::Counter, {}};
}

void add(MetricFamily& family, Labels labels, double value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = value;  // the family's type says which of the two counts
  metric.counter.value = value;
  family.metric.push_back(std::move(metric));
}

void add(MetricFamily& family, Labels labels, std::size_t value) {
  add(family, std::move(labels), static_cast<double>(value));
}

template <class Value>
void add_single(Families& families, MetricFamily family, Value value) {
  add(family, {}, value);
  families.push_back(std::move(family));
}

}  // namespace

std::vector<MetricFamily> RuntimeMetrics::Collect() const {
  Families families;
  MetricFamily build = gauge("cumulus_build_info", "1, with the program's version.");
  add(build, {{"version", std::string(kServerVersion)}}, 1.0);
  families.push_back(std::move(build));
  add_devices(families);
  add_sessions(families);
  add_files(families);
  add_process(families);
  return families;
}

void RuntimeMetrics::add_devices(Families& families) const {
  MetricFamily depth = gauge("cumulus_queue_depth", "Calls that wait for a device, by class.");
  MetricFamily running = gauge("cumulus_running_calls", "Calls that run on a device.");
  MetricFamily memory =
      gauge("cumulus_device_memory_bytes",
            "A device's memory budget: buffers, what calls have reserved, and what is free.");
  MetricFamily most = gauge("cumulus_device_memory_high_water_bytes",
                            "The most of a device's budget that was ever reserved at once.");
  MetricFamily healthy = gauge("cumulus_device_healthy", "0 once a device has failed for good.");
  MetricFamily faults = counter("cumulus_device_faults_total", "Failures of devices, by kind.");
  for (const DeviceSlot& slot : runtime_.devices) {
    const std::string& name = slot.device->name();
    const MemoryBudget& budget = *slot.device->budget();
    const std::size_t kept = budget.kept_bytes();
    const std::size_t reserved = std::max(budget.reserved_bytes(), kept);
    const std::size_t limit = budget.limit_bytes();
    add(depth, {{"device", name}, {"class", "interactive"}}, slot.queue->depth(JobClass::kInteractive));
    add(depth, {{"device", name}, {"class", "batch"}}, slot.queue->depth(JobClass::kBatch));
    add(running, {{"device", name}}, slot.queue->running());
    add(memory, {{"device", name}, {"state", "buffers"}}, kept);
    add(memory, {{"device", name}, {"state", "calls"}}, reserved - kept);
    add(memory, {{"device", name}, {"state", "free"}}, limit - std::min(limit, reserved));
    add(most, {{"device", name}}, budget.high_water_bytes());
    add(healthy, {{"device", name}}, slot.device->healthy() ? 1.0 : 0.0);
    add(faults, {{"device", name}, {"kind", "lost"}}, slot.device->healthy() ? 0.0 : 1.0);
  }
  for (MetricFamily* family : {&depth, &running, &memory, &most, &healthy, &faults})
    families.push_back(std::move(*family));
}

void RuntimeMetrics::add_sessions(Families& families) const {
  MetricFamily sessions = gauge("cumulus_sessions", "Sessions, by the device of their leases.");
  MetricFamily buffers = gauge("cumulus_buffers", "Buffers of sessions, by device.");
  std::map<const DeviceSlot*, std::pair<std::size_t, std::size_t>> counts;
  for (const SessionStore::View& view : runtime_.sessions.views(0)) {
    ++counts[view.session->slot].first;
    counts[view.session->slot].second += view.buffers;
  }
  for (const DeviceSlot& slot : runtime_.devices) {
    add(sessions, {{"device", slot.device->name()}}, counts[&slot].first);
    add(buffers, {{"device", slot.device->name()}}, counts[&slot].second);
  }
  families.push_back(std::move(sessions));
  families.push_back(std::move(buffers));
  MetricFamily evictions =
      counter("cumulus_evictions_total", "Sessions and buffers that ended without being deleted, by reason.");
  const SessionStore::Ends ends = runtime_.sessions.ends();
  add(evictions, {{"reason", "buffer_evicted"}}, ends.buffers_evicted);
  add(evictions, {{"reason", "buffer_expired"}}, ends.buffers_expired);
  add(evictions, {{"reason", "session_expired"}}, ends.sessions_expired);
  families.push_back(std::move(evictions));
}

void RuntimeMetrics::add_files(Families& families) const {
  MetricFamily expiry = gauge("cumulus_certificate_expiry_timestamp_seconds",
                              "When the server's certificate, or one that it is shown with, ends.");
  if (sources_.certificate_expiry)
    add(expiry, {}, absl::ToDoubleSeconds(sources_.certificate_expiry() - absl::UnixEpoch()));
  MetricFamily usable =
      gauge("cumulus_files_usable",
            "0 while files that have changed cannot be used, and what they held before still is.");
  if (sources_.usable_files) {
    for (const auto& [files, fine] : sources_.usable_files())
      add(usable, {{"files", files}}, fine ? 1.0 : 0.0);
  }
  families.push_back(std::move(expiry));
  families.push_back(std::move(usable));
}

void RuntimeMetrics::add_process(Families& families) const {
  const ProcessFigures process = read_process_figures();
  const MemoryBudget& images = *runtime_.decoded_images;
  std::size_t budget = images.limit_bytes() + runtime_.configuration.connections.message_bytes;
  for (const DeviceSlot& slot : runtime_.devices)
    budget += slot.device->space() == Space::kHost ? slot.device->budget()->limit_bytes() : 0;
  add_single(families,
             gauge("cumulus_host_memory_budget_bytes",
                   "What the configuration lets buffers and calls of the CPU backend, decoded images and "
                   "messages take of the host's memory; process_resident_memory_bytes is what is taken."),
             budget);
  add_single(families,
             gauge("cumulus_decoded_images_bytes", "Host memory of encoded images, decoding and decoded."),
             images.reserved_bytes());
  add_single(families, gauge("cumulus_connections", "Open connections."),
             sources_.connections ? sources_.connections() : std::size_t{0});
  add_single(families, gauge("cumulus_serving", "1 while health says SERVING."),
             sources_.serving && sources_.serving() ? 1.0 : 0.0);
  add_single(families, counter("cumulus_log_lines_dropped_total", "Log lines that could not be written."),
             static_cast<std::size_t>(dropped_log_lines()));
  // These names are Prometheus's own convention.
  add_single(families, gauge("process_resident_memory_bytes", "Resident memory."), process.resident_bytes);
  add_single(families, gauge("process_virtual_memory_bytes", "Virtual memory."), process.virtual_bytes);
  add_single(families, gauge("process_threads", "Threads."), process.threads);
  add_single(families, gauge("process_open_fds", "Open files."), process.open_files);
  add_single(families, gauge("process_max_fds", "Files that may be open."), process.max_files);
  add_single(families, counter("process_cpu_seconds_total", "Seconds of processors."),
             process.processor_seconds);
  add_single(families, gauge("process_start_time_seconds", "When the process began."),
             process.start_time_seconds);
}

}  // namespace cumulus::server
