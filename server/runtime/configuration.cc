#include "server/runtime/configuration.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>

#include "server/pipeline/text.h"
#include "server/runtime/array_spec.h"
#include "server/runtime/configuration_fields.h"
#include "server/runtime/host_memory.h"
#include "server/runtime/listen_address.h"

namespace cumulus::server {
namespace {

using config::v1::ServerConfig;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kAnySize = static_cast<std::int64_t>(kMaxArrayBytes);
constexpr std::int64_t kAnyCount = std::int64_t{1} << 40;
constexpr std::int64_t kMaxQueue = 1 << 20;
constexpr std::size_t kMaxSocketPath = 108;  // of sockaddr_un, and its zero
constexpr absl::string_view kDefaultAddress = "127.0.0.1:50651";

std::int64_t cores() { return std::max<std::int64_t>(1, std::thread::hardware_concurrency()); }

std::int64_t half_of_memory() { return available_memory_bytes() / 2; }

std::vector<std::string> resolve_listen(const ServerConfig& config, Fields& fields) {
  std::vector<std::string> addresses(config.listen().begin(), config.listen().end());
  if (addresses.empty()) addresses.emplace_back(kDefaultAddress);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const absl::StatusOr<ListenAddress> address = parse_listen_address(addresses[i]);
    const std::string path = concat("listen[", i, "]");
    if (!address.ok()) {
      fields.complain(path, to_std_view(address.status().message()));
    } else if (!address->is_loopback() && !config.insecure() && config.tls().certificate().empty()) {
      fields.complain(
          path,
          concat("'", address->text,
                 "' can be reached from other machines, without encryption; give tls.certificate and tls.key "
                 "(--tls-cert, --tls-key), use a loopback address, or say insecure: true (--insecure) where "
                 "the network is trusted"));
    }
  }
  return addresses;
}

/// `anywhere`: not only where this machine alone reaches it.
std::string resolve_page_address(std::string_view path, const std::string& text, bool anywhere,
                                 Fields& fields) {
  if (text.empty()) return text;
  const absl::StatusOr<ListenAddress> address = parse_listen_address(text);
  if (!address.ok()) {
    fields.complain(path, to_std_view(address.status().message()));
  } else if (address->is_unix()) {
    fields.complain(path, concat("'", text, "' is a Unix socket; pages are served at HOST:PORT"));
  } else if (!anywhere && !address->is_loopback()) {
    fields.complain(
        path, concat("'", text,
                     "' can be reached from other machines, which would see who does what here; use a "
                     "loopback address, or say insecure: true (--insecure) where the network is trusted"));
  }
  return text;
}

std::string resolve_advertise(const std::string& text, Fields& fields) {
  if (text.empty()) return text;
  const absl::StatusOr<ListenAddress> address = parse_listen_address(text);
  if (!address.ok()) {
    fields.complain("advertise", to_std_view(address.status().message()));
  } else if (!address->is_unix() && address->port == 0) {
    fields.complain("advertise", concat("'", text, "' has port 0; name the port that clients reach"));
  }
  return text;
}

Configuration::Devices resolve_devices(const config::v1::Devices& config, Fields& fields) {
  Configuration::Devices devices;
  switch (config.backend()) {
    case config::v1::Devices::BACKEND_UNSPECIFIED:
      devices.backend = Backend::kAuto;
      break;
    case config::v1::Devices::CPU:
      devices.backend = Backend::kCpu;
      break;
    case config::v1::Devices::CUDA:
      devices.backend = Backend::kCuda;
      break;
    default:
      fields.complain("devices.backend",
                      concat("is ", static_cast<int>(config.backend()), "; use CPU or CUDA"));
  }
  constexpr std::int64_t kMaxThreads = 4096;
  constexpr std::int64_t kMaxStreams = 8;
  constexpr std::int64_t kMaxCalls = 64;
  devices.cpu_threads =
      static_cast<int>(fields.count("devices.cpu_threads", config.cpu_threads(), 0, kMaxThreads));
  devices.cpu_calls = static_cast<int>(fields.count("devices.cpu_calls", config.cpu_calls(), 8, kMaxCalls));
  devices.cpu_memory_bytes =
      fields.count("devices.cpu_memory_bytes", config.cpu_memory_bytes(), half_of_memory(), kAnySize);
  devices.gpu_memory_bytes = fields.count("devices.gpu_memory_bytes", config.gpu_memory_bytes(), 0, kAnySize);
  devices.gpu_memory_on_demand = config.gpu_memory_on_demand();
  devices.streams = static_cast<int>(fields.count("devices.streams", config.streams(), 2, kMaxStreams));
  return devices;
}

Configuration::Limits resolve_limits(const config::v1::Limits& config, Fields& fields) {
  constexpr absl::Duration kShortest = absl::Milliseconds(1);
  constexpr std::int64_t kMaxMessageData = 3 * kMiB;  // of a message of 4 MiB
  Configuration::Limits limits;
  limits.max_inline_bytes =
      fields.count("limits.max_inline_bytes", config.max_inline_bytes(), kMiB, kMaxMessageData);
  limits.max_encoded_bytes =
      fields.count("limits.max_encoded_bytes", config.max_encoded_bytes(), kMaxMessageData, kMaxMessageData);
  limits.max_buffer_bytes = fields.count("limits.max_buffer_bytes", config.max_buffer_bytes(), 0, kAnySize);
  limits.max_pixels =
      fields.count("limits.max_pixels", config.max_pixels(), std::int64_t{1} << 29, kAnyCount);
  limits.max_channels = fields.count("limits.max_channels", config.max_channels(), 64, 65536);
  limits.decoded_images_bytes = fields.count("limits.decoded_images_bytes", config.decoded_images_bytes(),
                                             half_of_memory() / 2, kAnySize);
  constexpr std::int64_t kDecoderBytes = 32 * kMiB;
  limits.decoder_bytes =
      fields.count("limits.decoder_bytes", config.decoder_bytes(), kDecoderBytes, kAnySize);
  limits.decode_time = fields.duration("limits.decode_time", config.decode_time(), config.has_decode_time(),
                                       absl::Seconds(10), absl::Seconds(1));
  limits.min_upload_rate =
      fields.count("limits.min_upload_rate", config.min_upload_rate(), std::int64_t{16} << 10, kAnySize);
  limits.session_quota_bytes =
      fields.count("limits.session_quota_bytes", config.session_quota_bytes(), 0, kAnySize);
  limits.max_sessions = fields.count("limits.max_sessions", config.max_sessions(), 1024,
                                     std::numeric_limits<std::int32_t>::max());
  limits.max_buffers_per_session =
      fields.count("limits.max_buffers_per_session", config.max_buffers_per_session(), 65536,
                   std::numeric_limits<std::int32_t>::max());
  limits.default_ttl = fields.duration("limits.default_ttl", config.default_ttl(), config.has_default_ttl(),
                                       absl::Minutes(10), kShortest);
  limits.max_ttl =
      fields.duration("limits.max_ttl", config.max_ttl(), config.has_max_ttl(), absl::Hours(24), kShortest);
  limits.max_deadline = fields.duration("limits.max_deadline", config.max_deadline(),
                                        config.has_max_deadline(), absl::Minutes(10), kShortest);
  limits.stalled_transfer = fields.duration("limits.stalled_transfer", config.stalled_transfer(),
                                            config.has_stalled_transfer(), absl::Seconds(30), kShortest);
  if (limits.default_ttl > limits.max_ttl) {
    fields.complain("limits.default_ttl",
                    concat("is ", absl::FormatDuration(limits.default_ttl), "; at most limits.max_ttl (",
                           absl::FormatDuration(limits.max_ttl), ") is right"));
  }
  return limits;
}

DecodeQueue::Limits resolve_decoding(const config::v1::Scheduling& config, Fields& fields) {
  constexpr std::int64_t kMaxThreads = 256;
  DecodeQueue::Limits limits;
  limits.threads = fields.count("scheduling.decode_threads", config.decode_threads(),
                                std::clamp<std::int64_t>(cores(), 2, 4), kMaxThreads);
  limits.threads_per_client =
      fields.count("scheduling.decode_threads_per_client", config.decode_threads_per_client(),
                   std::max<std::int64_t>(1, static_cast<std::int64_t>(limits.threads / 2)), kMaxThreads);
  limits.max_waiting = fields.count("scheduling.max_decode_queue", config.max_decode_queue(), 64, kMaxQueue);
  limits.max_waiting_per_client = fields.count("scheduling.max_decode_queue_per_client",
                                               config.max_decode_queue_per_client(), 16, kMaxQueue);
  return limits;
}

Configuration::Connections resolve_connections(const config::v1::Connections& config, Fields& fields) {
  constexpr std::int64_t kMaxConnections = 1 << 20;
  constexpr std::int64_t kMaxStreams = 1 << 16;
  constexpr absl::Duration kShortest = absl::Seconds(1);
  Configuration::Connections result;
  result.limits.per_client =
      fields.count("connections.max_per_client", config.max_per_client(), 512, kMaxConnections);
  result.max_streams =
      static_cast<int>(fields.count("connections.max_streams", config.max_streams(), 100, kMaxStreams));
  result.message_bytes =
      fields.count("connections.message_bytes", config.message_bytes(), 256 * kMiB, kAnySize);
  constexpr std::int64_t kMaxHeaderBytes = kMiB;
  result.limits.frames.header_bytes =
      fields.count("connections.max_header_bytes", config.max_header_bytes(), 64 << 10, kMaxHeaderBytes);
  result.limits.frames.resets =
      fields.count("connections.max_resets", config.max_resets(), 100, kMaxConnections);
  result.limits.half_message = fields.duration("connections.half_message", config.half_message(),
                                               config.has_half_message(), absl::Seconds(30), kShortest);
  result.keepalive = fields.duration("connections.keepalive", config.keepalive(), config.has_keepalive(),
                                     absl::Seconds(30), kShortest);
  result.max_age = fields.duration("connections.max_age", config.max_age(), config.has_max_age(),
                                   absl::Hours(1), kShortest);
  result.watchdog = fields.duration("connections.watchdog", config.watchdog(), config.has_watchdog(),
                                    absl::Seconds(5), kShortest);
  return result;
}

PrincipalLimits resolve_principal(std::string_view path, const config::v1::PrincipalLimits& config,
                                  const PrincipalLimits& fallback, Fields& fields) {
  constexpr double kMinWeight = 0.001;
  constexpr double kMaxWeight = 1000;
  PrincipalLimits limits = fallback;
  limits.max_queue_depth = fields.count(concat(path, ".max_queue_depth"), config.max_queue_depth(),
                                        static_cast<std::int64_t>(fallback.max_queue_depth), kMaxQueue);
  limits.max_sessions = fields.count(concat(path, ".max_sessions"), config.max_sessions(),
                                     static_cast<std::int64_t>(fallback.max_sessions), kMaxQueue);
  limits.max_transfers = fields.count(concat(path, ".max_transfers"), config.max_transfers(),
                                      static_cast<std::int64_t>(fallback.max_transfers), kMaxQueue);
  limits.max_upload_bytes = fields.count(concat(path, ".max_upload_bytes"), config.max_upload_bytes(),
                                         static_cast<std::int64_t>(fallback.max_upload_bytes), kAnySize);
  limits.session_quota_bytes =
      fields.count(concat(path, ".session_quota_bytes"), config.session_quota_bytes(),
                   static_cast<std::int64_t>(fallback.session_quota_bytes), kAnySize);
  if (config.weight() == 0) return limits;
  limits.weight = config.weight();
  if (!(limits.weight >= kMinWeight && limits.weight <= kMaxWeight)) {  // nor is NaN
    fields.complain(concat(path, ".weight"),
                    concat("is ", limits.weight, "; ", kMinWeight, " to ", kMaxWeight,
                           " is right, or 0 for the default (", fallback.weight, ")"));
  }
  return limits;
}

Principals resolve_principals(const config::v1::Principals& config, Fields& fields) {
  const PrincipalLimits defaults =
      resolve_principal("principals.defaults", config.defaults(), PrincipalLimits(), fields);
  Principals::Overrides overrides;
  for (const auto& [name, limits] : config.overrides()) {
    const std::string path = concat("principals.overrides[\"", name, "\"]");
    overrides.emplace(name, resolve_principal(path, limits, defaults, fields));
  }
  return {defaults, std::move(overrides)};
}

/// Whether some address of `listen` is one that this machine alone reaches.
bool listens_here(const std::vector<std::string>& listen) {
  return std::any_of(listen.begin(), listen.end(), [](const std::string& text) {
    const absl::StatusOr<ListenAddress> address = parse_listen_address(text);
    return address.ok() && address->is_loopback();
  });
}

Configuration::SharedMemory resolve_shared_memory(const config::v1::SharedMemory& config,
                                                  const std::vector<std::string>& listen, Fields& fields) {
  constexpr std::int64_t kMaxRegions = 4096;
  Configuration::SharedMemory result;
  if (config.socket().empty()) {
    result.new_name = listens_here(listen);
  } else if (config.socket().front() != '/' && config.socket().front() != '@' && config.socket() != "off") {
    fields.complain("shared_memory.socket",
                    concat("is '", config.socket(), "'; use a path that begins with /, @NAME, or off"));
  } else if (config.socket().size() >= kMaxSocketPath) {
    fields.complain("shared_memory.socket", concat("has ", config.socket().size(), " bytes, where a Unix ",
                                                   "socket's name has at most ", kMaxSocketPath - 1));
  } else if (config.socket() != "off") {
    result.socket = config.socket();
  }
  result.group = config.group();
  result.max_bytes =
      fields.count("shared_memory.max_bytes", config.max_bytes(), half_of_memory() / 2, kAnySize);
  result.max_bytes_per_user =
      fields.count("shared_memory.max_bytes_per_user", config.max_bytes_per_user(),
                   std::max<std::int64_t>(1, static_cast<std::int64_t>(result.max_bytes / 2)), kAnySize);
  result.max_regions = fields.count("shared_memory.max_regions", config.max_regions(), 128, kMaxRegions);
  result.max_regions_per_user =
      fields.count("shared_memory.max_regions_per_user", config.max_regions_per_user(), 64, kMaxRegions);
  result.max_device_bytes =
      fields.count("shared_memory.max_device_bytes", config.max_device_bytes(), 0, kAnySize);
  result.max_device_bytes_per_user =
      fields.count("shared_memory.max_device_bytes_per_user", config.max_device_bytes_per_user(),
                   static_cast<std::int64_t>(result.max_device_bytes / 2), kAnySize);
  return result;
}

Configuration::Logging resolve_logging(const config::v1::Logging& config, Fields& fields) {
  static const std::pair<std::string_view, LogLevel> kLevels[] = {
      {"", LogLevel::kInfo},     {"trace", LogLevel::kTrace}, {"debug", LogLevel::kDebug},
      {"info", LogLevel::kInfo}, {"warn", LogLevel::kWarn},   {"error", LogLevel::kError}};
  constexpr std::int64_t kMinPending = 4096;  // some lines
  constexpr std::int64_t kMaxPending = std::int64_t{1} << 30;
  Configuration::Logging logging;
  logging.json = config.json();
  logging.file = config.file();
  logging.max_pending_bytes =
      fields.count("logging.max_pending_bytes", config.max_pending_bytes(), kMiB, kMaxPending);
  if (config.max_pending_bytes() > 0 && config.max_pending_bytes() < kMinPending) {
    fields.complain("logging.max_pending_bytes",
                    concat("is ", config.max_pending_bytes(), "; at least ", kMinPending, " is right"));
  }
  logging.flush_limit = fields.duration("logging.flush_limit", config.flush_limit(), config.has_flush_limit(),
                                        absl::Milliseconds(200), absl::ZeroDuration());
  const auto* level = std::find_if(std::begin(kLevels), std::end(kLevels),
                                   [&](const auto& entry) { return entry.first == config.level(); });
  if (level != std::end(kLevels)) {
    logging.level = level->second;
  } else {
    fields.complain("logging.level",
                    concat("is '", config.level(), "'; use trace, debug, info, warn or error"));
  }
  return logging;
}

}  // namespace

void Configuration::apply_device_budget(std::size_t largest_budget_bytes) {
  for (std::size_t* limit : {&limits.max_buffer_bytes, &limits.session_quota_bytes}) {
    if (*limit == 0) *limit = largest_budget_bytes;
  }
}

absl::StatusOr<Configuration> resolve_configuration(const ServerConfig& config) {
  Fields fields;
  Configuration result;
  result.listen = resolve_listen(config, fields);
  result.advertise = resolve_advertise(config.advertise(), fields);
  result.insecure = config.insecure();
  result.tls = resolve_tls(config.tls(), fields);
  result.identity = resolve_identity(config, fields);
  result.file_root = resolve_file_root(config.file_root(), fields);
  result.channelz = config.channelz();
  result.supervise = config.supervise();
  result.reflection = !config.has_reflection() || config.reflection();
  result.devices = resolve_devices(config.devices(), fields);
  result.limits = resolve_limits(config.limits(), fields);
  const auto& scheduling = config.scheduling();
  result.decoding = resolve_decoding(scheduling, fields);
  result.principals = resolve_principals(config.principals(), fields);
  result.connections = resolve_connections(config.connections(), fields);
  const auto& shutdown = config.shutdown();
  result.shutdown.lame_duck =
      fields.duration("shutdown.lame_duck", shutdown.lame_duck(), shutdown.has_lame_duck(), absl::Seconds(5),
                      absl::ZeroDuration());
  result.shutdown.drain = fields.duration("shutdown.drain", shutdown.drain(), shutdown.has_drain(),
                                          absl::Seconds(30), absl::ZeroDuration());
  result.shutdown.grace = fields.duration("shutdown.grace", shutdown.grace(), shutdown.has_grace(),
                                          absl::Seconds(2), absl::ZeroDuration());
  result.logging = resolve_logging(config.logging(), fields);
  result.shared_memory = resolve_shared_memory(config.shared_memory(), result.listen, fields);
  const auto& pages = config.observability();
  result.observability.metrics = resolve_page_address("observability.metrics", pages.metrics(), true, fields);
  result.observability.status =
      resolve_page_address("observability.status", pages.status(), config.insecure(), fields);
  if (const absl::Status status = fields.status(); !status.ok()) return status;
  return result;
}

Configuration default_configuration() { return resolve_configuration({}).value(); }

}  // namespace cumulus::server
