// Composition root of cumulusd: reads the configuration, builds the parts, wires them.
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "proto/process.h"
#include "server/operations/operations_service.h"
#include "server/runtime/command_line.h"
#include "server/runtime/fault_watch.h"
#include "server/runtime/identity/access.h"
#include "server/runtime/identity/reloader.h"
#include "server/runtime/lifecycle.h"
#include "server/runtime/logging.h"
#include "server/runtime/open_devices.h"
#include "server/runtime/runtime.h"
#include "server/runtime/service_manager.h"
#include "server/runtime/shared_memory/service.h"
#include "server/runtime/shared_memory/socket.h"
#include "server/runtime/status_page/endpoints.h"
#include "server/runtime/supervisor.h"
#include "server/runtime/transfer/transfer_service.h"
#include "server/services/server_service.h"
#include "server/services/sessions_service.h"

namespace cumulus::server {
namespace {

constexpr int kFailed = 1;
constexpr int kDeaf = 70;          // EX_SOFTWARE
constexpr int kDeviceFailed = 74;  // EX_IOERR

int fail(const absl::Status& status) {
  constexpr absl::Duration kFlushLimit = absl::Milliseconds(200);
  flush_log(kFlushLimit);  // this comes last
  std::fprintf(stderr, "cumulusd: %s\n", std::string(status.message()).c_str());
  return kFailed;
}

/// Ends what serves, and then the process, within the time that the configuration gives.
[[noreturn]] void stop(ServerLifecycle& lifecycle, Runtime& runtime) {
  const Configuration& configuration = runtime.configuration;
  const Configuration::Shutdown& limits = configuration.shutdown;
  const absl::Duration flush_limit = configuration.logging.flush_limit;
  tell_service_manager("STOPPING=1");
  end_process_after(limits.lame_duck + limits.drain + limits.grace, flush_limit);
  lifecycle.drain(limits, runtime);
  if (dropped_log_lines() > 0) spdlog::warn("log lines dropped since the start: {}", dropped_log_lines());
  spdlog::info("drained");
  end_process(0, flush_limit);
}

/// Ends the process within 2 s of the device's failure: nothing works on it any more in this process.
[[noreturn]] void end_with(DeviceSlot& failed, ServerLifecycle& lifecycle, absl::Duration flush_limit) {
  constexpr absl::Duration kToAnswer = absl::Seconds(1);
  end_process_after(kToAnswer + absl::Milliseconds(500), flush_limit, kDeviceFailed);
  spdlog::critical("{} has failed: ending, to be started again", failed.device->name());
  lifecycle.fail(failed, kToAnswer);
  end_process(kDeviceFailed, flush_limit);
}

int serve(Configuration configuration, const WorkerLink& supervisor) {
  absl::StatusOr<std::vector<DeviceSlot>> devices = open_devices(configuration);
  if (!devices.ok()) return fail(devices.status());
  const absl::StatusOr<Access> access = Access::load(configuration);
  if (!access.ok()) return fail(access.status());
  Runtime runtime(configuration, *std::move(devices), std::make_shared<DecodeHelper>(), access->identity,
                  access->files);
  const std::unique_ptr<grpc::Service> operations = make_operations_service(runtime);
  SessionsService sessions(runtime);
  TransferService transfer(runtime);
  const auto shared_memory = SharedMemorySocket::start(runtime);
  if (!shared_memory.ok()) return fail(shared_memory.status());
  SharedMemoryService shared_transfer(runtime, transfer, shared_memory->get());
  ServerService server(runtime, *shared_memory != nullptr ? (*shared_memory)->address() : "");
  auto lifecycle = ServerLifecycle::start(configuration,
                                          {operations.get(), &sessions, &transfer, &shared_transfer, &server},
                                          {access->identity, access->certificates});
  if (!lifecycle.ok()) return fail(lifecycle.status());
  Reloader reloader(access->reloadable, absl::Seconds(1));
  RuntimeMetrics::Sources sources{.connections = [&] { return lifecycle->connections(); },
                                  .serving = [&] { return lifecycle->serving(); },
                                  .usable_files = [&] { return reloader.usable(); }};
  if (access->certificates != nullptr)
    sources.certificate_expiry = [pair = access->certificates] { return pair->expiry(); };
  const auto pages = StatusEndpoints::start(runtime, std::move(sources));
  if (!pages.ok()) return fail(pages.status());
  const absl::Status announced = lifecycle->announce(
      configuration, {v1::Operations::service_full_name(), v1::Sessions::service_full_name(),
                      v1::BufferTransfer::service_full_name(), v1::SharedMemory::service_full_name(),
                      v1::Server::service_full_name()});
  if (!announced.ok()) return fail(announced);
  supervisor.announce(lifecycle->addresses());
  tell_service_manager("READY=1");
  const absl::Duration flush_limit = configuration.logging.flush_limit;
  const FaultWatch faults(runtime.devices,
                          [&](DeviceSlot& failed) { end_with(failed, *lifecycle, flush_limit); });
  lifecycle->watch(configuration.connections.watchdog, [&](const std::string& address) {
    spdlog::critical("{} takes no connection any more: ending, to be started again", address);
    end_process(kDeaf, flush_limit);
  });
  const int signal = wait_for_stop_signal([&] {
    reopen_log();
    reloader.reload_all();
  });
  spdlog::info("signal {}: draining", signal);
  if (*shared_memory != nullptr) (*shared_memory)->withdraw();
  stop(*lifecycle, runtime);
}

}  // namespace
}  // namespace cumulus::server

int main(int argc, char** argv) {
  using namespace cumulus::server;
  become_decode_helper_if_started_as_one();
  cumulus::prepare_process();
  prepare_signals();
  const std::variant<Configuration, ExitNow> command_line = parse_command_line(argc, argv);
  if (const auto* exit = std::get_if<ExitNow>(&command_line)) {
    std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
    return exit->code;
  }
  Configuration configuration = std::get<Configuration>(command_line);
  const WorkerLink supervisor = configuration.supervise ? supervise(RestartLimits()) : WorkerLink();
  if (!supervisor.addresses().empty()) configuration.listen = supervisor.addresses();
  const absl::Status logging = start_logging(configuration.logging);
  if (!logging.ok()) return fail(logging);
  raise_file_limit();
  try {
    return serve(configuration, supervisor);
  } catch (const std::exception& problem) {  // a device that has no memory for its staging ring, say
    return fail(absl::InternalError(problem.what()));
  }
}
