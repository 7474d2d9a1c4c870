#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cumulus/array.h"
#include "cumulus/credentials.h"
#include "cumulus/errors.h"
#include "cumulus/operation.h"
#include "cumulus/session.h"

/// The C++ client of a Cumulus server.
///
///   absl::StatusOr<cumulus::Client> client = cumulus::Client::connect("127.0.0.1:50651");
///   absl::StatusOr<cumulus::Session> session = client->create_session();
///   absl::StatusOr<cumulus::Buffer> map = session->upload({pixels, {height, width, 3}});
///   absl::StatusOr<cumulus::Result> table = session->run(cumulus::build_sampling_table(*map));
///   absl::StatusOr<cumulus::Array> bytes = table->fetch("table");
///
/// Errors are absl::Status; no exception crosses this interface (but std::bad_alloc for small
/// allocations). A call that the server turns away with UNAVAILABLE and a time to come back is
/// repeated, with back-off, within its deadline. SessionOptions::recreate says how work outlives a restart
/// of the server.
namespace cumulus {

class Connection;

struct ConnectOptions {
  /// For the first answer of the server.
  absl::Duration connect_timeout = absl::Seconds(10);
  /// Of calls that name no timeout of their own.
  absl::Duration call_timeout = absl::Minutes(5);
  /// A server that answers no ping for half of this (its machine is off, its process stands still) is taken
  /// for dead: calls that wait for it end with UNAVAILABLE, this long after its last sign of life at most.
  /// One whose process ends is noticed at once. At least 2 s.
  absl::Duration dead_after = absl::Seconds(40);
  /// Without: those of read_client_settings(). Unix sockets have no need of any.
  std::optional<Credentials> credentials = {};
  /// How long a call goes on trying, within its deadline, while no server answers or the one that answered is
  /// going: a restart takes some seconds. Of calls that can be repeated whatever became of them: operations
  /// without a session, create_session, capabilities, and all of a session with SessionOptions::recreate.
  /// Zero: not at all.
  absl::Duration max_outage = absl::Seconds(30);
  /// Where client and server are on one machine, which the target says (a Unix socket, a loopback address)
  /// and the server finds too, arrays go through memory that both have. Off: over the connection always.
  bool shared_memory = true;
};

struct DeviceInfo {
  std::string name;     // "cpu", "cuda0", ...
  std::string backend;  // "cpu" or "cuda"
  std::string model;
  std::int64_t pool_bytes = 0;      // the memory budget
  std::int64_t reserved_bytes = 0;  // of it, held by buffers and running calls
  bool healthy = false;
};

/// What a server can do, and its limits.
struct Capabilities {
  std::string server_version;
  std::string instance;                 // new at every start of the server
  std::vector<std::string> operations;  // names of the RPCs
  std::vector<DeviceInfo> devices;
  std::int64_t max_chunk_bytes = 0;
  std::int64_t max_inline_bytes = 0;
  std::int64_t max_encoded_bytes = 0;
  std::int64_t max_buffer_bytes = 0;
  std::int64_t max_pixels = 0;  // of one decoded image
  int max_channels = 0;
  std::int64_t session_quota_bytes = 0;
  absl::Duration max_ttl;
  absl::Duration max_deadline;
  int max_queue_depth = 0;
  int max_pipeline_steps = 0;                // 0: the server runs no pipelines
  bool file_root = false;                    // EncodedImage::path may name files
  std::vector<std::string> image_formats;    // that the server decodes; empty: none
  std::int64_t max_shared_device_bytes = 0;  // GPU memory that clients map, cumulus/device_sharing.h; 0: none
};

enum class Health { kServing, kNotServing, kUnknown };

/// A connection to one server. Copies share it; all member functions are thread-safe.
class Client {
 public:
  /// Reaches the server and reads its capabilities. `target` is HOST:PORT, [HOST6]:PORT or unix:PATH.
  /// UNAVAILABLE, with what is wrong, where no server answers; INVALID_ARGUMENT where the credentials cannot
  /// be used; UNAUTHENTICATED where the server does not take them. The connection uses no HTTP proxy.
  static absl::StatusOr<Client> connect(const std::string& target, const ConnectOptions& options = {});

  /// Read anew from the server; waits for one as max_outage says.
  absl::StatusOr<Capabilities> capabilities(const CallOptions& options = {}) const;

  /// What grpc.health.v1 says of the whole server.
  absl::StatusOr<Health> health(const CallOptions& options = {}) const;

  absl::StatusOr<Session> create_session(const SessionOptions& options = {}) const;

  /// Runs an operation on inline and encoded inputs without a session: one call for a small job. The
  /// outputs come inline.
  absl::StatusOr<Result> run(const Operation& operation, const RunOptions& options = {}) const;
  std::future<absl::StatusOr<Result>> run_async(const Operation& operation,
                                                const RunOptions& options = {}) const;
  /// `done` is called as in Session::run_async.
  void run_async(const Operation& operation, const RunOptions& options,
                 std::function<void(absl::StatusOr<Result>)> done) const;

 private:
  absl::StatusOr<Capabilities> ask_capabilities(const CallOptions& options, bool outlasts_breaks) const;
  explicit Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  std::shared_ptr<Connection> connection_;
};

}  // namespace cumulus
