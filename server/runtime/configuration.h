#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cumulus/config/v1/config.pb.h"
#include "server/runtime/connections/limits.h"
#include "server/runtime/decode/decode_queue.h"
#include "server/runtime/identity/settings.h"
#include "server/runtime/image_decoder.h"
#include "server/runtime/principal.h"

namespace cumulus::server {

enum class Backend { kAuto, kCpu, kCuda };
enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError };

/// The daemon's configuration, checked, with every default filled in. The fields are those of
/// cumulus/config/v1/config.proto, which says what they mean.
struct Configuration {
  struct Devices {
    Backend backend = Backend::kAuto;
    int cpu_threads = 0;  // 0: all cores
    int cpu_calls = 0;
    std::size_t cpu_memory_bytes = 0;
    std::size_t gpu_memory_bytes = 0;  // 0: 80 % of what is free when the device is opened
    bool gpu_memory_on_demand = false;
    int streams = 0;
  };
  struct Limits {
    std::size_t max_inline_bytes = 0;
    std::size_t max_encoded_bytes = 0;
    std::size_t max_buffer_bytes = 0;  // 0 until apply_device_budget
    std::size_t max_pixels = 0;
    std::size_t max_channels = 0;
    std::size_t decoded_images_bytes = 0;
    std::size_t decoder_bytes = 0;
    absl::Duration decode_time;
    std::size_t session_quota_bytes = 0;  // 0 until apply_device_budget
    std::size_t max_sessions = 0;
    std::size_t max_buffers_per_session = 0;
    absl::Duration default_ttl;
    absl::Duration max_ttl;
    absl::Duration max_deadline;
    absl::Duration stalled_transfer;
    std::size_t min_upload_rate = 0;  // bytes a second
  };
  struct Connections {
    ConnectionLimits limits;
    int max_streams = 0;
    std::size_t message_bytes = 0;
    absl::Duration keepalive;
    absl::Duration max_age;
    absl::Duration watchdog;
  };
  struct Shutdown {
    absl::Duration lame_duck;
    absl::Duration drain;
    absl::Duration grace;
  };
  struct Logging {
    LogLevel level = LogLevel::kInfo;
    bool json = false;
    std::string file;  // empty: standard error
    std::size_t max_pending_bytes = 0;
    absl::Duration flush_limit;
  };

  struct SharedMemory {
    std::string socket;     // a path or @NAME; empty: none
    bool new_name = false;  // of the abstract namespace, at each start; socket is empty
    std::string group;
    std::size_t max_bytes = 0;
    std::size_t max_bytes_per_user = 0;
    std::size_t max_regions = 0;
    std::size_t max_regions_per_user = 0;
    std::size_t max_device_bytes = 0;  // 0: GPU memory is not shared
    std::size_t max_device_bytes_per_user = 0;
  };

  struct Observability {  // empty: none
    std::string metrics;
    std::string status;
  };

  std::vector<std::string> listen;  // HOST:PORT, [HOST6]:PORT or unix:PATH; at least one
  std::string advertise;            // empty: clients stay at the address that they came by
  bool insecure = false;
  bool reflection = true;
  bool supervise = false;
  bool channelz = false;
  TlsFiles tls;
  IdentitySettings identity;
  FileRootSettings file_root;
  Devices devices;
  Limits limits;
  Principals principals;
  DecodeQueue::Limits decoding;
  Connections connections;
  Shutdown shutdown;
  Logging logging;
  Observability observability;
  SharedMemory shared_memory;
  std::string port_file;  // where to write the addresses that are served; empty: nowhere

  /// The limits that follow from the devices where the configuration leaves them open: no array and no
  /// session's quota is larger than `largest_budget_bytes`.
  void apply_device_budget(std::size_t largest_budget_bytes);

  ImageLimits image_limits() const {
    return {limits.max_pixels, limits.max_channels, limits.max_buffer_bytes, limits.decoder_bytes,
            limits.decode_time};
  }
};

/// Text format; errors name `file`, line and column. Unknown fields are errors.
absl::StatusOr<config::v1::ServerConfig> parse_server_config(std::string_view text, std::string_view file);
/// As parse_server_config, of the file at `path`.
absl::StatusOr<config::v1::ServerConfig> load_server_config(const std::string& path);

/// Fills the defaults and checks every field; the error has a line for each field that is wrong, with its
/// path and what would be right.
absl::StatusOr<Configuration> resolve_configuration(const config::v1::ServerConfig& config);

/// That of an empty file.
Configuration default_configuration();

}  // namespace cumulus::server
