#include "server/runtime/command_line.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "proto/unknown_words.h"
#include "server/pipeline/text.h"
#include "server/runtime/fault_points.h"
#include "server/runtime/identity/tokens.h"
#include "server/version.h"

namespace cumulus::server {
namespace {

constexpr int kConfigurationWrong = 1;
constexpr int kCommandLineWrong = 2;

/// Of `cumulusd token`.
struct NewTokenFlags {
  std::string name;
  std::string role = "user";
  std::string file;
};

/// What the flags say; a flag that was not given leaves the file's value.
struct Flags {
  std::string config;
  std::vector<std::string> listen;
  std::string backend;
  int threads = 0;
  std::uint64_t memory_bytes = 0;
  bool memory_on_demand = false;
  std::string log_level;
  bool log_json = false;
  bool reflection = true;
  bool insecure = false;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_client_ca;
  std::string token_file;
  NewTokenFlags new_token;
  bool supervise = false;
  double lame_duck_seconds = 0;
  double drain_seconds = 0;
  std::string port_file;
  std::string metrics_address;
  std::string status_address;
  std::string shared_memory_socket;
  std::uint64_t shared_device_bytes = 0;
};

void declare_token_command(CLI::App& app, NewTokenFlags& flags) {
  CLI::App* command = app.add_subcommand("token", "Makes a token, says it once, and keeps its hash");
  command->add_option("NAME", flags.name, "The principal that its holder is: letters, digits and ._@-")
      ->required();
  command->add_option("--role", flags.role, "user, admin or metrics")
      ->check(CLI::IsMember({"user", "admin", "metrics"}));
  command->add_option("--token-file", flags.file, "Where its line is added; without, both are printed")
      ->type_name("FILE");
}

void declare_shared_memory(CLI::App& app, Flags& flags) {
  app.add_option("--shared-memory-socket", flags.shared_memory_socket,
                 "Where clients on this machine get memory that they share with the server: a path, @NAME of "
                 "the abstract namespace, or off")
      ->type_name("SOCKET");
  app.add_option("--shared-device-memory", flags.shared_device_bytes,
                 "GPU memory that clients on this machine may map, in bytes or with K, M or G; 0: none")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("BYTES");
}

void declare(CLI::App& app, Flags& flags) {
  constexpr int kMaxThreads = 4096;
  constexpr double kMaxSeconds = 3600;
  app.set_version_flag("--version", std::string(kServerVersion));
  app.add_option("--config", flags.config,
                 "Configuration in protobuf text format; the other flags override it")
      ->type_name("FILE");
  app.add_option(
         "--listen", flags.listen,
         "Address to serve on: HOST:PORT, [HOST6]:PORT or unix:PATH; may be repeated; port 0 is any free one")
      ->type_name("ADDR")
      ->allow_extra_args(false);
  app.add_option("--backend", flags.backend, "cpu, cuda, or auto: every GPU, and the CPU where there is none")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  app.add_option("--threads", flags.threads, "Threads of the CPU backend; 0: all cores")
      ->check(CLI::Range(0, kMaxThreads));
  app.add_option("--memory", flags.memory_bytes, "Memory budget of each device, in bytes or with K, M or G")
      ->transform(CLI::AsSizeValue(false))
      ->check([](const std::string& bytes) {
        const double count = std::strtod(bytes.c_str(), nullptr);  // of -1 it is 2^64 - 1
        const bool right = count > 0 && count < 0x1p63;
        return right ? std::string() : std::string("a number above 0 is right, such as 8G");
      });
  app.add_flag("--memory-on-demand", flags.memory_on_demand,
               "Take a GPU's memory when it is needed, up to the budget, rather than all of it at start");
  app.add_option("--log-level", flags.log_level, "trace, debug, info, warn or error");
  app.add_flag("--log-json", flags.log_json, "Log one JSON object a line");
  app.add_flag("--reflection,!--no-reflection", flags.reflection, "Serve gRPC reflection (the default)");
  app.add_flag("--insecure", flags.insecure, "Serve addresses that are not loopback without encryption");
  app.add_option("--tls-cert", flags.tls_certificate,
                 "The server's certificate and those that issued it, PEM")
      ->type_name("FILE");
  app.add_option("--tls-key", flags.tls_key, "The certificate's key, PEM")->type_name("FILE");
  app.add_option("--tls-client-ca", flags.tls_client_ca,
                 "Authorities whose certificates clients may show to say who they are, PEM")
      ->type_name("FILE");
  app.add_option("--token-file", flags.token_file,
                 "Hashes of the tokens that clients may show to say who they are; cumulusd token writes it")
      ->type_name("FILE");
  app.add_flag("--supervise", flags.supervise,
               "Serve in a process of its own, which this one starts again when it ends by a fault");
  app.add_option("--lame-duck", flags.lame_duck_seconds,
                 "Seconds from SIGTERM, when health says NOT_SERVING, until new sessions are refused")
      ->check(CLI::Range(0.0, kMaxSeconds));
  app.add_option("--drain", flags.drain_seconds,
                 "Seconds after that which sessions have to come to their end")
      ->check(CLI::Range(0.0, kMaxSeconds));
  app.add_option("--metrics-address", flags.metrics_address,
                 "Serve /metrics for Prometheus, /healthz and /readyz over HTTP at this address, such as "
                 "127.0.0.1:9464")
      ->type_name("ADDR");
  app.add_option(
         "--status-address", flags.status_address,
         "Serve a page that shows what the server does over HTTP at this address, such as 127.0.0.1:9465")
      ->type_name("ADDR");
  declare_shared_memory(app, flags);
  app.add_option("--port-file", flags.port_file, "Write the addresses here, one a line, once they are served")
      ->type_name("FILE");
  declare_token_command(app, flags.new_token);
}

void override_devices(const CLI::App& app, const Flags& flags, config::v1::Devices& devices) {
  if (app.count("--backend") > 0) {
    devices.set_backend(flags.backend == "cpu"    ? config::v1::Devices::CPU
                        : flags.backend == "cuda" ? config::v1::Devices::CUDA
                                                  : config::v1::Devices::BACKEND_UNSPECIFIED);
  }
  if (app.count("--threads") > 0) devices.set_cpu_threads(flags.threads);
  if (app.count("--memory-on-demand") > 0) devices.set_gpu_memory_on_demand(flags.memory_on_demand);
  if (app.count("--memory") > 0) {
    devices.set_cpu_memory_bytes(static_cast<std::int64_t>(flags.memory_bytes));
    devices.set_gpu_memory_bytes(static_cast<std::int64_t>(flags.memory_bytes));
  }
}

void override_identity(const CLI::App& app, const Flags& flags, config::v1::ServerConfig& config) {
  if (app.count("--tls-cert") > 0) config.mutable_tls()->set_certificate(flags.tls_certificate);
  if (app.count("--tls-key") > 0) config.mutable_tls()->set_key(flags.tls_key);
  if (app.count("--tls-client-ca") > 0) config.mutable_tls()->set_client_ca(flags.tls_client_ca);
  if (app.count("--token-file") > 0) config.mutable_identity()->set_token_file(flags.token_file);
}

void set_seconds(double seconds, google::protobuf::Duration& duration) {
  constexpr double kNanosPerSecond = 1e9;
  double whole = 0;
  const double fraction = std::modf(seconds, &whole);
  duration.set_seconds(static_cast<std::int64_t>(whole));
  duration.set_nanos(static_cast<std::int32_t>(fraction * kNanosPerSecond));
}

void override_config(const CLI::App& app, const Flags& flags, config::v1::ServerConfig& config) {
  if (app.count("--listen") > 0) config.mutable_listen()->Assign(flags.listen.begin(), flags.listen.end());
  if (app.count("--insecure") > 0) config.set_insecure(flags.insecure);
  if (app.count("--supervise") > 0) config.set_supervise(flags.supervise);
  if (app.count("--reflection") > 0) config.set_reflection(flags.reflection);
  override_identity(app, flags, config);
  override_devices(app, flags, *config.mutable_devices());
  if (app.count("--log-level") > 0) config.mutable_logging()->set_level(flags.log_level);
  if (app.count("--log-json") > 0) config.mutable_logging()->set_json(flags.log_json);
  if (app.count("--metrics-address") > 0) config.mutable_observability()->set_metrics(flags.metrics_address);
  if (app.count("--status-address") > 0) config.mutable_observability()->set_status(flags.status_address);
  if (app.count("--shared-memory-socket") > 0)
    config.mutable_shared_memory()->set_socket(flags.shared_memory_socket);
  if (app.count("--shared-device-memory") > 0) {
    config.mutable_shared_memory()->set_max_device_bytes(
        static_cast<std::int64_t>(flags.shared_device_bytes));
  }
  config::v1::Shutdown& shutdown = *config.mutable_shutdown();
  if (app.count("--lame-duck") > 0) set_seconds(flags.lame_duck_seconds, *shutdown.mutable_lame_duck());
  if (app.count("--drain") > 0) set_seconds(flags.drain_seconds, *shutdown.mutable_drain());
}

ExitNow wrong(int code, std::string_view text) { return {code, concat("cumulusd: ", text, "\n")}; }

/// Of a word that is unknown, and the name of a file.
std::string_view advice_for(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  std::error_code ignored;
  const bool file = !unknown.empty() && std::filesystem::is_regular_file(unknown.front(), ignored);
  return file ? "; a configuration is named by --config" : "";
}

/// The token alone goes to standard output, for a file of its holder's, where its line goes to a file.
ExitNow make_token_now(const NewTokenFlags& flags) {
  if (!is_token_name(flags.name)) {
    return wrong(
        kCommandLineWrong,
        concat("NAME: '", flags.name, "' is not 1 to 64 letters, digits and ._@- (nor may it be local)"));
  }
  const Role role = parse_role(flags.role).value_or(Role::kUser);
  if (flags.file.empty()) {
    const NewToken made = make_token(flags.name, role);
    return {0, concat("token: ", made.token, "\nline for the server's token file: ", made.line, "\n")};
  }
  const absl::StatusOr<std::string> token = add_token(flags.file, flags.name, role);
  if (!token.ok()) return wrong(kConfigurationWrong, to_std_view(token.status().message()));
  return {0, *token + "\n"};
}

}  // namespace

std::variant<Configuration, ExitNow> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{"Serves Cumulus: image operations on GPUs, or on the CPU, over gRPC.", "cumulusd"};
  Flags flags;
  declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return ExitNow{0, app.help()};
  } catch (const CLI::CallForVersion& version) {
    return ExitNow{0, concat("cumulusd ", version.what(), "\n")};
  } catch (const CLI::ParseError& error) {
    return wrong(kCommandLineWrong, concat(unknown_words::explain(app, error), advice_for(app),
                                           "; cumulusd --help lists what there is"));
  }
  if (app.got_subcommand("token")) return make_token_now(flags.new_token);

  config::v1::ServerConfig config;
  if (!flags.config.empty()) {
    absl::StatusOr<config::v1::ServerConfig> file = load_server_config(flags.config);
    if (!file.ok()) return wrong(kConfigurationWrong, to_std_view(file.status().message()));
    config = *std::move(file);
  }
  override_config(app, flags, config);
  if (const absl::Status points = set_fault_points(config); !points.ok())
    return wrong(kConfigurationWrong, to_std_view(points.message()));
  absl::StatusOr<Configuration> configuration = resolve_configuration(config);
  if (!configuration.ok()) return wrong(kConfigurationWrong, to_std_view(configuration.status().message()));
  configuration->port_file = flags.port_file;
  return *std::move(configuration);
}

}  // namespace cumulus::server
