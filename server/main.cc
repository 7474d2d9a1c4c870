// Composition root of cumulusd: reads the configuration, builds the parts, wires them.
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "proto/heap.h"
#include "server/operations/operations_service.h"
#include "server/runtime/command_line.h"
#include "server/runtime/identity/access.h"
#include "server/runtime/identity/reloader.h"
#include "server/runtime/lifecycle.h"
#include "server/runtime/logging.h"
#include "server/runtime/open_devices.h"
#include "server/runtime/runtime.h"
#include "server/runtime/status_page/endpoints.h"
#include "server/runtime/transfer/transfer_service.h"
#include "server/services/server_service.h"
#include "server/services/sessions_service.h"

namespace cumulus::server {
namespace {

constexpr int kFailed = 1;
constexpr int kDeaf = 70;  // EX_SOFTWARE

int fail(const absl::Status& status) {
  constexpr absl::Duration kFlushLimit = absl::Milliseconds(200);
  flush_log(kFlushLimit);  // this comes last
  std::fprintf(stderr, "cumulusd: %s\n", std::string(status.message()).c_str());
  return kFailed;
}

/// Ends what serves, and then the process, within the time that the configuration gives.
[[noreturn]] void stop(ServerLifecycle& lifecycle, const Configuration& configuration) {
  const Configuration::Shutdown& limits = configuration.shutdown;
  const absl::Duration flush_limit = configuration.logging.flush_limit;
  end_process_after(limits.lame_duck + limits.drain + limits.grace, flush_limit);
  lifecycle.drain(limits);
  if (dropped_log_lines() > 0) spdlog::warn("log lines dropped since the start: {}", dropped_log_lines());
  spdlog::info("drained");
  end_process(0, flush_limit);
}

int serve(Configuration configuration, std::shared_ptr<DecodeHelper> helper) {
  absl::StatusOr<std::vector<DeviceSlot>> devices = open_devices(configuration);
  if (!devices.ok()) return fail(devices.status());
  const absl::StatusOr<Access> access = Access::load(configuration);
  if (!access.ok()) return fail(access.status());
  Runtime runtime(configuration, *std::move(devices), std::move(helper), access->identity, access->files);
  const std::unique_ptr<grpc::Service> operations = make_operations_service(runtime);
  SessionsService sessions(runtime);
  TransferService transfer(runtime);
  ServerService server(runtime);
  auto lifecycle = ServerLifecycle::start(configuration, {operations.get(), &sessions, &transfer, &server},
                                          {access->identity, access->certificates});
  if (!lifecycle.ok()) return fail(lifecycle.status());
  runtime.set_endpoint(lifecycle->addresses().front());
  const auto pages = StatusEndpoints::start(runtime, {.connections = [&] { return lifecycle->connections(); },
                                                      .serving = [&] { return lifecycle->serving(); }});
  if (!pages.ok()) return fail(pages.status());
  const absl::Status announced = lifecycle->announce(
      configuration, {v1::Operations::service_full_name(), v1::Sessions::service_full_name(),
                      v1::BufferTransfer::service_full_name(), v1::Server::service_full_name()});
  if (!announced.ok()) return fail(announced);
  lifecycle->watch(configuration.connections.watchdog, [&](const std::string& address) {
    spdlog::critical("{} takes no connection any more: ending, to be started again", address);
    end_process(kDeaf, configuration.logging.flush_limit);
  });
  Reloader reloader(access->reloadable(configuration), absl::Seconds(1));
  const int signal = wait_for_stop_signal([&] {
    reopen_log();
    reloader.reload_all();
  });
  spdlog::info("signal {}: draining", signal);
  stop(*lifecycle, configuration);
}

}  // namespace
}  // namespace cumulus::server

int main(int argc, char** argv) {
  using namespace cumulus::server;
  cumulus::keep_heap();
  prepare_signals();
  const std::variant<Configuration, ExitNow> command_line = parse_command_line(argc, argv);
  if (const auto* exit = std::get_if<ExitNow>(&command_line)) {
    std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
    return exit->code;
  }
  const Configuration& configuration = std::get<Configuration>(command_line);
  // Before any thread exists, of the log or of a library.
  absl::StatusOr<std::shared_ptr<DecodeHelper>> helper = DecodeHelper::start();
  if (!helper.ok()) return fail(helper.status());
  const absl::Status logging = start_logging(configuration.logging);
  if (!logging.ok()) return fail(logging);
  raise_file_limit();
  try {
    return serve(configuration, *std::move(helper));
  } catch (const std::exception& problem) {  // a device that has no memory for its staging ring, say
    return fail(absl::InternalError(problem.what()));
  }
}
