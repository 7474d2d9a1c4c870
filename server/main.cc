// Composition root of cumulusd: reads the configuration, builds the parts, wires them.
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "server/operations/operations_service.h"
#include "server/runtime/command_line.h"
#include "server/runtime/lifecycle.h"
#include "server/runtime/logging.h"
#include "server/runtime/open_devices.h"
#include "server/runtime/runtime.h"
#include "server/runtime/transfer/transfer_service.h"
#include "server/services/server_service.h"
#include "server/services/sessions_service.h"

namespace cumulus::server {
namespace {

constexpr int kFailed = 1;

int fail(const absl::Status& status) {
  std::fprintf(stderr, "cumulusd: %s\n", std::string(status.message()).c_str());
  return kFailed;
}

int serve(Configuration configuration) {
  absl::StatusOr<std::vector<DeviceSlot>> devices = open_devices(configuration);
  if (!devices.ok()) return fail(devices.status());
  Runtime runtime(configuration, *std::move(devices));
  const std::unique_ptr<grpc::Service> operations = make_operations_service(runtime);
  SessionsService sessions(runtime);
  TransferService transfer(runtime);
  ServerService server(runtime);
  auto lifecycle = ServerLifecycle::start(configuration, {operations.get(), &sessions, &transfer, &server});
  if (!lifecycle.ok()) return fail(lifecycle.status());
  runtime.set_endpoint(lifecycle->addresses().front());
  const absl::Status announced = lifecycle->announce(
      configuration, {v1::Operations::service_full_name(), v1::Sessions::service_full_name(),
                      v1::BufferTransfer::service_full_name(), v1::Server::service_full_name()});
  if (!announced.ok()) return fail(announced);
  const int signal = wait_for_stop_signal();
  spdlog::info("signal {}: draining", signal);
  lifecycle->drain(configuration.shutdown);
  spdlog::info("drained");
  return 0;
}

}  // namespace
}  // namespace cumulus::server

int main(int argc, char** argv) {
  using namespace cumulus::server;
  block_stop_signals();
  const std::variant<Configuration, ExitNow> command_line = parse_command_line(argc, argv);
  if (const auto* exit = std::get_if<ExitNow>(&command_line)) {
    std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
    return exit->code;
  }
  const Configuration& configuration = std::get<Configuration>(command_line);
  const absl::Status logging = start_logging(configuration.logging);
  if (!logging.ok()) return fail(logging);
  try {
    return serve(configuration);
  } catch (const std::exception& problem) {  // a device that has no memory for its staging ring, say
    return fail(absl::InternalError(problem.what()));
  }
}
