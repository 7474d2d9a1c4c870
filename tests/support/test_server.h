#pragma once

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "cumulus/v1/server.grpc.pb.h"
#include "cumulus/v1/sessions.grpc.pb.h"
#include "cumulus/v1/transfer.grpc.pb.h"
#include "server/operations/operations_service.h"
#include "server/runtime/configuration.h"
#include "server/runtime/open_devices.h"
#include "server/runtime/runtime.h"
#include "server/runtime/transfer/transfer_service.h"
#include "server/services/server_service.h"
#include "server/services/sessions_service.h"
#include "tests/support/decode_helper.h"
#include "tests/support/eventually.h"
#include "tests/support/grpc_engine.h"
#include "tests/support/status_details.h"

namespace cumulus::testing {

/// A whole server inside the test, on the CPU backend, reached through an in-process channel.
class TestServer {
 public:
  static constexpr std::size_t kBudget = std::size_t{64} << 20;

  /// One CPU device of kBudget bytes.
  static server::Configuration configuration() {
    server::Configuration configuration = server::default_configuration();
    configuration.devices.backend = server::Backend::kCpu;
    configuration.devices.cpu_threads = 2;
    configuration.devices.cpu_calls = 1;
    configuration.devices.cpu_memory_bytes = kBudget;
    return configuration;
  }
  /// One GPU with a pool of kBudget bytes; for tests that skip themselves where there is none.
  static server::Configuration gpu_configuration() {
    server::Configuration configuration = server::default_configuration();
    configuration.devices.backend = server::Backend::kCuda;
    configuration.devices.gpu_memory_bytes = kBudget;
    return configuration;
  }

  explicit TestServer(server::Configuration settings = configuration(),
                      std::shared_ptr<const server::FileRoot> files = nullptr)
      : devices_(open(settings)),
        runtime(settings, std::move(devices_), decode_helper(), nullptr, std::move(files)),
        operations_service_(server::make_operations_service(runtime)),
        sessions_service_(runtime),
        server_service_(runtime),
        transfer_service_(runtime) {
    keep_grpc_engine();
    grpc::ServerBuilder builder;
    builder.RegisterService(operations_service_.get());
    builder.RegisterService(&sessions_service_);
    builder.RegisterService(&server_service_);
    builder.RegisterService(&transfer_service_);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    server_ = builder.BuildAndStart();
    channel = server_->InProcessChannel({});
    operations = v1::Operations::NewStub(channel);
    sessions = v1::Sessions::NewStub(channel);
    server = v1::Server::NewStub(channel);
    transfer = v1::BufferTransfer::NewStub(channel);
  }

  /// Where the server listens too, for clients that are not this process's channel.
  int port() const { return port_; }
  /// Cancels what runs, and waits for its end.
  void shut_down() { server_->Shutdown(std::chrono::system_clock::now()); }

  server::DeviceSlot& slot() { return runtime.devices.front(); }
  std::size_t reserved_bytes() const { return runtime.devices.front().device->budget()->reserved_bytes(); }

  /// Makes a session; `last_digit` tells several apart.
  std::string create_session(char last_digit = '0') {
    v1::CreateSessionRequest request;
    request.set_session_id(absl::StrCat("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2", std::string(1, last_digit)));
    v1::Session session;
    grpc::ClientContext context;
    const grpc::Status status = sessions->CreateSession(&context, request, &session);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return session.name();
  }

 private:
  // Opened before the runtime takes its copy of the settings.
  std::vector<server::DeviceSlot> devices_;

 public:
  server::Runtime runtime;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Operations::Stub> operations;
  std::unique_ptr<v1::Sessions::Stub> sessions;
  std::unique_ptr<v1::Server::Stub> server;
  std::unique_ptr<v1::BufferTransfer::Stub> transfer;

 private:
  /// Also fills the limits that follow from the devices.
  static std::vector<server::DeviceSlot> open(server::Configuration& settings) {
    auto devices = server::open_devices(settings);
    EXPECT_TRUE(devices.ok()) << devices.status();
    return *std::move(devices);
  }

  int port_ = 0;
  std::unique_ptr<grpc::Service> operations_service_;
  server::SessionsService sessions_service_;
  server::ServerService server_service_;
  server::TransferService transfer_service_;
  std::unique_ptr<grpc::Server> server_;
};

template <class T>
void set_inline(v1::Source& source, v1::ElementType type, const std::vector<std::int64_t>& shape,
                const std::vector<T>& values) {
  auto& array = *source.mutable_inline_array();
  array.mutable_spec()->set_element_type(type);
  array.mutable_spec()->clear_shape();
  for (const std::int64_t extent : shape) array.mutable_spec()->add_shape(extent);
  array.set_data(values.data(), values.size() * sizeof(T));
}

template <class T>
std::vector<T> values_of(const v1::InlineArray& array) {
  std::vector<T> values(array.data().size() / sizeof(T));
  // Of nothing, data() may be null, which memcpy does not take.
  if (!values.empty()) std::memcpy(values.data(), array.data().data(), values.size() * sizeof(T));
  return values;
}

inline const v1::NamedArray* find_array(const v1::OperationResult& result, const std::string& name) {
  for (const auto& array : result.arrays()) {
    if (array.name() == name) return &array;
  }
  return nullptr;
}

}  // namespace cumulus::testing
