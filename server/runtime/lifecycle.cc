#include "server/runtime/lifecycle.h"

#include <absl/time/clock.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/text.h"
#include "server/runtime/connections/guarded_tls.h"
#include "server/runtime/identity/admin_gate.h"
#include "server/runtime/listen_address.h"
#include "server/runtime/logging.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace cumulus::server {
namespace {

// Messages carry at most a chunk or an inline array; api.md has the measurements behind it.
constexpr int kMaxMessageBytes = 4 << 20;
constexpr int kMinPingInterval = 500;  // milliseconds
constexpr int kMaxMetadataBytes = 16 << 10;

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

sigset_t awaited_signals() {
  sigset_t signals = stop_signals();
  sigaddset(&signals, SIGHUP);
  return signals;
}

/// gRPC would write lines of its own form to standard error, whatever logging is configured.
void log_for_grpc(gpr_log_func_args* line) {
  const bool error = line->severity == GPR_LOG_SEVERITY_ERROR;
  spdlog::log(error ? spdlog::level::warn : spdlog::level::debug, "gRPC: {}", line->message);
}

/// gRPC says only that it could not bind.
absl::Status check_socket_folder(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(concat("listen: cannot make the socket unix:", path, ": the folder ",
                                           folder, ": ", std::strerror(errno),
                                           "; make it, or choose one that this user may write to"));
}

/// A socket file that a dead server left behind is in the way; one that somebody listens on is not ours.
absl::Status clear_stale_socket(const std::string& path) {
  sockaddr_un socket_address{};
  socket_address.sun_family = AF_UNIX;
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) return absl::OkStatus();
  if (!S_ISSOCK(file.st_mode)) {
    return absl::InvalidArgumentError(
        concat("listen: '", path, "' exists and is no socket; choose another path"));
  }
  std::memcpy(socket_address.sun_path, path.c_str(), path.size() + 1);
  const int probe = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const bool answered = probe >= 0 && ::connect(probe, reinterpret_cast<const sockaddr*>(&socket_address),
                                                sizeof(socket_address)) == 0;
  if (probe >= 0) ::close(probe);
  if (answered) {
    return absl::InvalidArgumentError(concat("listen: a server listens on unix:", path, " already"));
  }
  ::unlink(path.c_str());
  return absl::OkStatus();
}

/// The addresses, once no stale socket is in the way of one.
absl::StatusOr<std::vector<ListenAddress>> free_addresses(const std::vector<std::string>& texts) {
  std::vector<ListenAddress> addresses;
  for (const std::string& text : texts) {
    absl::StatusOr<ListenAddress> address = parse_listen_address(text);
    if (!address.ok()) return address.status();
    if (address->is_unix()) {
      if (const absl::Status folder = check_socket_folder(address->socket_path); !folder.ok()) return folder;
      if (const absl::Status clear = clear_stale_socket(address->socket_path); !clear.ok()) return clear;
    }
    addresses.push_back(*std::move(address));
  }
  return addresses;
}

absl::Status write_port_file(const std::string& path, const std::vector<std::string>& addresses) {
  // Renamed into place, so that who waits for the file never reads half of it.
  const std::string fresh = path + ".new";
  {
    std::ofstream file(fresh);
    for (const std::string& address : addresses) file << address << '\n';
    if (!file.flush())
      return absl::InvalidArgumentError(
          concat("port file: cannot write '", fresh, "': ", std::strerror(errno)));
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) {
    return absl::InvalidArgumentError(concat("port file: cannot make '", path, "': ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

/// Gives connections to gRPC: those of Unix sockets as they are, those of TCP through TLS where there is any.
class Entrance {
 public:
  Entrance(grpc::ServerBuilder& builder, std::shared_ptr<const Certificates> certificates)
      : certificates_(std::move(certificates)),
        plain_(add(builder, grpc::InsecureServerCredentials())),
        tcp_(certificates_ != nullptr ? add(builder, certificates_->credentials()) : plain_) {}

  void hand(int listener, int connection, bool tcp) const {
    ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listener;
    parameters.fd = connection;
    (tcp ? tcp_ : plain_)->HandleNewConnection(&parameters);
  }

 private:
  using ExternalConnectionAcceptor = grpc::experimental::ExternalConnectionAcceptor;

  static std::shared_ptr<ExternalConnectionAcceptor> add(
      grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials) {
    using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    return builder.experimental().AddExternalConnectionAcceptor(External::FROM_FD, std::move(credentials));
  }

  const std::shared_ptr<const Certificates> certificates_;  // whose files gRPC reads as long as it serves
  const std::shared_ptr<ExternalConnectionAcceptor> plain_;
  const std::shared_ptr<ExternalConnectionAcceptor> tcp_;
};

void configure(grpc::ServerBuilder& builder, const Configuration::Connections& limits) {
  const auto milliseconds = [](absl::Duration duration) {
    return static_cast<int>(
        std::min<std::int64_t>(absl::ToInt64Milliseconds(duration), std::numeric_limits<int>::max()));
  };
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // Clients ping while their calls compute, to notice a server that is gone; gRPC would take that for abuse.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingInterval);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(limits.keepalive));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(absl::Seconds(10)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, milliseconds(limits.max_age));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, milliseconds(absl::Minutes(10)));
  // gRPC closes an idle connection within twice this time, and so before the acceptor does: what the
  // acceptor finds without a call has a call that never becomes whole.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             milliseconds(limits.limits.half_message * 0.45));
  builder.AddChannelArgument("grpc.server_handshake_timeout_ms", milliseconds(limits.limits.half_message));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.max_streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  grpc::ResourceQuota quota("messages");
  quota.Resize(limits.message_bytes);
  builder.SetResourceQuota(quota);
}

/// Counts the calls of all services in `calls`, and shows what is for admins to admins alone.
void intercept(grpc::ServerBuilder& builder, const std::vector<grpc::Service*>& services,
               const std::shared_ptr<OpenCalls>& calls, const std::shared_ptr<const Identity>& identity) {
  std::vector<std::string> counted;
  for (grpc::Service* service : services) {
    if (auto* counts = dynamic_cast<CountsItsCalls*>(service)) counted.push_back(counts->count_in(calls));
    if (auto* counts = dynamic_cast<CountsItsWork*>(service)) counts->count_work_in(calls);
  }
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(make_call_interceptors(calls, std::move(counted)));
  if (identity != nullptr && identity->required()) interceptors.push_back(make_admin_gate(identity));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
}

}  // namespace

void prepare_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int wait_for_stop_signal(const std::function<void()>& on_hangup) {
  const sigset_t awaited = awaited_signals();
  int signal = 0;
  while (sigwait(&awaited, &signal) != 0 || signal == SIGHUP) {
    if (signal == SIGHUP) on_hangup();
  }
  const sigset_t stopping = stop_signals();
  pthread_sigmask(SIG_UNBLOCK, &stopping, nullptr);
  return signal;
}

void raise_file_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t before = files.rlim_cur;
  files.rlim_cur = files.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) {
    spdlog::warn("open files: at most {}; the limit could not be raised: {}", before, std::strerror(errno));
    return;
  }
  spdlog::info("open files: at most {}, the hard limit (the soft limit was {})", files.rlim_cur, before);
}

void end_process(int code, absl::Duration flush_limit) {
  flush_log(flush_limit);
#ifdef __SANITIZE_ADDRESS__
  __lsan_do_leak_check();  // which _exit leaves out
#endif
  ::_exit(code);
}

void end_process_after(absl::Duration limit, absl::Duration flush_limit, int code) {
  std::thread([limit, flush_limit, code] {
    absl::SleepFor(limit);
    spdlog::warn("calls that could not be cancelled still run: ending without them");
    end_process(code, flush_limit);
  }).detach();
}

absl::StatusOr<ServerLifecycle> ServerLifecycle::start(const Configuration& configuration,
                                                       const std::vector<grpc::Service*>& services,
                                                       const Security& security) {
  gpr_set_log_function(log_for_grpc);
  if (configuration.reflection) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  if (configuration.channelz) grpc::channelz::experimental::InitChannelzService();
  absl::StatusOr<std::vector<ListenAddress>> addresses = free_addresses(configuration.listen);
  if (!addresses.ok()) return addresses.status();
  ServerLifecycle lifecycle;
  std::vector<Descriptor> listeners;
  std::set<int> tcp_listeners;
  for (ListenAddress& address : *addresses) {
    absl::StatusOr<std::vector<Descriptor>> sockets = listen_at(address, address.port);
    if (!sockets.ok()) return sockets.status();
    for (const Descriptor& socket : *sockets) {
      if (!address.is_unix()) tcp_listeners.insert(socket.number());
    }
    std::move(sockets->begin(), sockets->end(), std::back_inserter(listeners));
    lifecycle.addresses_.push_back(address.is_unix() ? address.text : address.with_port(address.port));
    if (address.is_unix()) lifecycle.socket_paths_.push_back(address.socket_path);
    spdlog::info("serving on {}", lifecycle.addresses_.back());
  }
  lifecycle.calls_ = std::make_shared<OpenCalls>();
  grpc::ServerBuilder builder;
  configure(builder, configuration.connections);
  intercept(builder, services, lifecycle.calls_, security.identity);
  lifecycle.health_ = std::make_unique<HealthService>();
  builder.RegisterService(lifecycle.health_.get());
  for (grpc::Service* service : services) builder.RegisterService(service);
  if (security.certificates != nullptr) guard_tls(configuration.connections.limits.frames);
  const auto entrance = std::make_shared<const Entrance>(builder, security.certificates);
  lifecycle.server_ = builder.BuildAndStart();
  if (lifecycle.server_ == nullptr) return absl::InternalError("gRPC does not start; its log lines say why");
  lifecycle.acceptor_ =
      std::make_unique<Acceptor>(std::move(listeners), configuration.connections.limits, lifecycle.calls_,
                                 [entrance, tcp = std::move(tcp_listeners)](int listener, int connection) {
                                   entrance->hand(listener, connection, tcp.contains(listener));
                                 });
  lifecycle.listens_at_ = *std::move(addresses);
  lifecycle.tls_ = security.certificates != nullptr;
  return lifecycle;
}

void ServerLifecycle::watch(absl::Duration interval, std::function<void(const std::string&)> deaf) {
  watchdog_ = std::make_unique<Watchdog>(listens_at_, Watchdog::Limits{.interval = interval, .tls = tls_},
                                         std::move(deaf), [calls = calls_] { return calls->begun(); });
}

absl::Status ServerLifecycle::announce(const Configuration& configuration,
                                       const std::vector<std::string>& names) {
  health_->add_names(names);
  set_serving(true);
  return configuration.port_file.empty() ? absl::OkStatus()
                                         : write_port_file(configuration.port_file, addresses_);
}

void ServerLifecycle::set_serving(bool serving) {
  *serving_ = serving;
  health_->set_serving(serving);
}

void ServerLifecycle::drain(const Configuration::Shutdown& limits, Runtime& runtime) {
  // What is stopped at the deadline has its answer within a slice, or a transfer's check.
  static constexpr absl::Duration kToAnswer = absl::Milliseconds(500);
  watchdog_.reset();
  set_serving(false);
  absl::SleepFor(limits.lame_duck);
  runtime.drain.refuse_new();
  const absl::Time deadline = steady_now() + limits.drain;
  runtime.sessions.wait_for_none(deadline);
  calls_->wait_for_none(deadline - steady_now());
  runtime.drain.end_all();
  health_->end_watches();
  calls_->wait_for_none(kToAnswer);
  acceptor_.reset();
  for (const std::string& path : socket_paths_) ::unlink(path.c_str());
  // It also waits for streams that are nobody's work, such as reflection's, and for half messages.
  std::promise<void> done;
  std::future<void> shut_down = done.get_future();
  shutdown_ = std::thread([server = server_.get(), done = std::move(done)]() mutable {
    server->Shutdown(absl::ToChronoTime(on_the_clock(steady_now() + kToAnswer)));
    server->Wait();
    done.set_value();
  });
  calls_->wait_for_none(2 * kToAnswer);
  // What is left has its answer on the way.
  shut_down.wait_for(std::chrono::milliseconds(200));
}

void ServerLifecycle::fail(DeviceSlot& slot, absl::Duration to_answer) {
  set_serving(false);
  slot.queue->fail(failed_device(*slot.device));
  calls_->wait_for_none(to_answer);
}

ServerLifecycle::~ServerLifecycle() {
  if (shutdown_.joinable()) shutdown_.join();
}

}  // namespace cumulus::server
