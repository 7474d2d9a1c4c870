#include "bench/service/local_server.h"

#include <utility>

#include "bench/service/turns.h"
#include "server/runtime/configuration.h"
#include "server/runtime/open_devices.h"

namespace cumulus::bench {
namespace {

server::Runtime open_runtime(const std::string& backend, const std::string& listen) {
  server::Configuration settings = server::default_configuration();
  settings.listen = {listen};
  settings.devices.backend = backend == "cpu"    ? server::Backend::kCpu
                             : backend == "cuda" ? server::Backend::kCuda
                                                 : server::Backend::kAuto;
  settings.shutdown.lame_duck = absl::ZeroDuration();
  auto devices = value_or_throw(server::open_devices(settings), "devices");
  return {settings, std::move(devices)};
}

}  // namespace

void add_backend_option(CLI::App& app, std::string& backend) {
  app.add_option("--backend", backend, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
}

LocalServer::LocalServer(const std::string& backend,
                         const std::shared_ptr<server::Certificates>& certificates, const std::string& listen)
    : runtime_(open_runtime(backend, listen)),
      sessions_(runtime_),
      transfer_(runtime_),
      socket_(value_or_throw(server::SharedMemorySocket::start(runtime_), "shared memory")),
      shared_(runtime_, transfer_, socket_.get()),
      capabilities_(runtime_, socket_->address()),
      lifecycle_(
          value_or_throw(server::ServerLifecycle::start(runtime_.configuration,
                                                        {&sessions_, &transfer_, &shared_, &capabilities_},
                                                        {nullptr, certificates}),
                         "server")) {}

LocalServer::~LocalServer() { lifecycle_.drain(runtime_.configuration.shutdown, runtime_); }

std::string LocalServer::description() const { return device().name() + ": " + device().model(); }

}  // namespace cumulus::bench
