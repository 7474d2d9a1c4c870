#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/v1/sessions.grpc.pb.h"
#include "cumulus/v1/shared_memory.grpc.pb.h"
#include "server/runtime/shared_memory/service.h"
#include "server/runtime/shared_memory/socket.h"
#include "tests/support/eventually.h"
#include "tests/support/raw_shared_region.h"
#include "tests/support/staged_device.h"
#include "tests/support/transfer_server.h"

namespace cumulus::testing {

/// Sessions, transfers, shared memory and capabilities over a real socket, on a device of the test's choice.
class SharedMemoryServer {
 public:
  static server::Configuration configuration() {
    server::Configuration settings = TransferServer::configuration();
    settings.shared_memory.max_bytes = std::size_t{256} << 20;
    settings.shared_memory.max_bytes_per_user = settings.shared_memory.max_bytes;
    return settings;
  }

  explicit SharedMemoryServer(std::unique_ptr<server::Device> device,
                              const server::Configuration& settings = configuration())
      : runtime(settings, one_slot(std::move(device))),
        sessions_service_(runtime),
        transfer_service_(runtime),
        socket(start_socket(runtime)),
        shared_service_(runtime, transfer_service_, socket.get()),
        server_service_(runtime, socket != nullptr ? socket->address() : "") {
    keep_grpc_engine();
    shared_service_.count_work_in(calls);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    for (grpc::Service* service : std::initializer_list<grpc::Service*>{
             &sessions_service_, &transfer_service_, &shared_service_, &server_service_})
      builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    address = "127.0.0.1:" + std::to_string(port);
    const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    sessions = v1::Sessions::NewStub(channel);
    transfer = v1::BufferTransfer::NewStub(channel);
    shared = v1::SharedMemory::NewStub(channel);
    v1::CreateSessionRequest request;
    request.set_session_id("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e20");
    v1::Session created;
    grpc::ClientContext context;
    EXPECT_TRUE(sessions->CreateSession(&context, request, &created).ok());
    session = created.name();
  }
  ~SharedMemoryServer() { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5)); }

  /// Of an array of that many bytes, through that region.
  v1::WriteSharedRequest write_request(const std::string& region, std::size_t bytes) const {
    v1::WriteSharedRequest request;
    request.set_region(region);
    request.mutable_spec()->set_session(session);
    request.mutable_spec()->mutable_spec()->set_element_type(v1::UINT8);
    request.mutable_spec()->mutable_spec()->add_shape(static_cast<std::int64_t>(bytes));
    return request;
  }

  /// Over a stream: what the server has.
  std::string download(const std::string& name) const {
    v1::ReadBufferRequest request;
    request.set_name(name);
    grpc::ClientContext context;
    const auto reader = transfer->ReadBuffer(&context, request);
    std::string data;
    for (v1::ReadBufferResponse chunk; reader->Read(&chunk);) data += chunk.data();
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return data;
  }

  /// What requests are checked by is what kernels read.
  void expect_checks_of_what_is_there(const std::string& name, const server::Principal& caller) {
    const auto resident = runtime.sessions.find_buffer(name, caller);
    ASSERT_TRUE(resident.ok()) << resident.status();
    const std::string head(reinterpret_cast<const char*>((*resident)->head.data()), (*resident)->head.size());
    EXPECT_EQ(head, download(name).substr(0, head.size()));
  }

  std::size_t reserved_bytes() { return runtime.devices.front().device->budget()->reserved_bytes(); }
  /// No region is left, nor what a transfer had reserved.
  bool has_reclaimed_all() {
    return eventually([&] {
      return reserved_bytes() == 0 && runtime.sessions.buffer_count() == 0 &&
             socket->shares().regions() == 0 && socket->shares().bytes() == 0;
    });
  }

 private:
  static std::vector<server::DeviceSlot> one_slot(std::unique_ptr<server::Device> device) {
    std::vector<server::DeviceSlot> slots(1);
    slots[0].device = std::move(device);
    slots[0].queue = std::make_unique<server::DeviceQueue>(*slots[0].device);
    return slots;
  }
  static std::unique_ptr<server::SharedMemorySocket> start_socket(server::Runtime& runtime) {
    auto socket = server::SharedMemorySocket::start(runtime);
    EXPECT_TRUE(socket.ok()) << socket.status();
    return *std::move(socket);
  }

 public:
  server::Runtime runtime;

 private:
  server::SessionsService sessions_service_;
  server::TransferService transfer_service_;

 public:
  std::unique_ptr<server::SharedMemorySocket> socket;
  const std::shared_ptr<server::OpenCalls> calls = std::make_shared<server::OpenCalls>();  // not gRPC's
  std::string address;
  std::string session;
  std::unique_ptr<v1::Sessions::Stub> sessions;
  std::unique_ptr<v1::BufferTransfer::Stub> transfer;
  std::unique_ptr<v1::SharedMemory::Stub> shared;

 private:
  server::SharedMemoryService shared_service_;
  server::ServerService server_service_;
  std::unique_ptr<grpc::Server> server_;
};

/// A client that writes 1000 bytes into its ring and others over them, before the server copies them to the
/// device.
inline void fill_and_overwrite(StagedDevice& staged, const RawSharedRegion& ring) {
  staged.hold();
  ring.fill(0, std::string(1000, 'a'), 0);
  ASSERT_TRUE(eventually([&] { return staged.waiting_copies() > 0; }));
  std::memset(ring.slot(0), 'b', 1000);
  staged.release();
}

}  // namespace cumulus::testing
