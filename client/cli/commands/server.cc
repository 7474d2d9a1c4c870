#include <absl/strings/str_cat.h>

#include <utility>
#include <vector>

#include "cli/app/command_line.h"

namespace cumulus::cli {
namespace {

absl::Status run_health(Job& job) {
  const absl::StatusOr<Client> client = job.connect();
  if (!client.ok()) return client.status();
  const absl::StatusOr<Health> health = client->health(job.call());
  if (!health.ok()) return health.status();
  job.report().add("status", *health == Health::kServing ? "SERVING" : "NOT_SERVING");
  const absl::StatusOr<Capabilities> capabilities = client->capabilities(job.call());
  if (!capabilities.ok()) return capabilities.status();
  job.report().add("server_version", capabilities->server_version);
  job.report().add("instance", capabilities->instance);
  if (*health == Health::kServing) return absl::OkStatus();
  return absl::UnavailableError("the server is not serving: it is starting or stopping; try again later");
}

Report describe(const DeviceInfo& device) {
  Report report;
  report.add("name", device.name);
  report.add("backend", device.backend);
  report.add("model", device.model);
  report.add("pool_bytes", device.pool_bytes);
  report.add("reserved_bytes", device.reserved_bytes);
  report.add("healthy", device.healthy);
  return report;
}

absl::Status run_capabilities(Job& job) {
  const absl::StatusOr<Client> client = job.connect();
  if (!client.ok()) return client.status();
  const absl::StatusOr<Capabilities> server = client->capabilities(job.call());
  if (!server.ok()) return server.status();
  Report& report = job.report();
  report.add("server_version", server->server_version);
  report.add("instance", server->instance);
  report.add("operations", server->operations);
  std::vector<Report> devices;
  for (const DeviceInfo& device : server->devices) devices.push_back(describe(device));
  report.add("devices", std::move(devices));
  report.add("image_formats", server->image_formats);
  report.add("max_chunk_bytes", server->max_chunk_bytes);
  report.add("max_inline_bytes", server->max_inline_bytes);
  report.add("max_encoded_bytes", server->max_encoded_bytes);
  report.add("max_buffer_bytes", server->max_buffer_bytes);
  report.add("max_pixels", server->max_pixels);
  report.add("max_channels", server->max_channels);
  report.add("session_quota_bytes", server->session_quota_bytes);
  report.add("max_ttl_seconds", absl::ToDoubleSeconds(server->max_ttl));
  report.add("max_deadline_seconds", absl::ToDoubleSeconds(server->max_deadline));
  report.add("max_queue_depth", server->max_queue_depth);
  return absl::OkStatus();
}

}  // namespace

void add_server_commands(CommandLine& line) {
  line.add("health", "Ask whether the server serves", run_health);
  line.add("capabilities", "Tell what the server can do, and its limits", run_capabilities);
}

}  // namespace cumulus::cli
