#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "server/runtime/lifecycle.h"
#include "server/runtime/runtime.h"
#include "server/runtime/shared_memory/service.h"
#include "server/runtime/shared_memory/socket.h"
#include "server/runtime/transfer/transfer_service.h"
#include "server/services/server_service.h"
#include "server/services/sessions_service.h"

namespace cumulus::bench {

/// --backend, of a program that has a LocalServer.
void add_backend_option(CLI::App& app, std::string& backend);

/// A server without operations, in this process.
class LocalServer {
 public:
  /// `backend`: cpu, cuda, or auto. With TLS where there are certificates. By default it is reached over
  /// loopback TCP. Throws std::runtime_error.
  explicit LocalServer(const std::string& backend,
                       const std::shared_ptr<server::Certificates>& certificates = nullptr,
                       const std::string& listen = "127.0.0.1:0");
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  const std::string& address() const { return lifecycle_.addresses().front(); }
  server::Device& device() const { return *runtime_.devices.front().device; }
  /// Its device, in words.
  std::string description() const;

 private:
  server::Runtime runtime_;
  server::SessionsService sessions_;
  server::TransferService transfer_;
  const std::unique_ptr<server::SharedMemorySocket> socket_;
  server::SharedMemoryService shared_;
  server::ServerService capabilities_;
  server::ServerLifecycle lifecycle_;
};

}  // namespace cumulus::bench
