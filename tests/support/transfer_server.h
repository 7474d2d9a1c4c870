#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cumulus/v1/sessions.grpc.pb.h"
#include "cumulus/v1/transfer.grpc.pb.h"
#include "proto/checksums.h"
#include "server/runtime/configuration.h"
#include "server/runtime/runtime.h"
#include "server/runtime/transfer/transfer_service.h"
#include "server/services/server_service.h"
#include "server/services/sessions_service.h"
#include "tests/support/grpc_engine.h"
#include "tests/support/staged_device.h"

namespace cumulus::testing {

inline std::uint32_t checksum_of(const std::string& data) {
  return crc32c({reinterpret_cast<const std::byte*>(data.data()), data.size()});
}

inline std::string random_bytes(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// Sessions, transfers and capabilities alone, over a real socket, on a device of the test's choice.
class TransferServer {
 public:
  static constexpr std::size_t kBudget = std::size_t{128} << 20;

  static server::Configuration configuration() {
    server::Configuration settings = server::default_configuration();
    settings.apply_device_budget(kBudget);
    return settings;
  }

  explicit TransferServer(std::unique_ptr<server::Device> device,
                          const server::Configuration& settings = configuration())
      : runtime(settings, one_slot(std::move(device))),
        sessions_service_(runtime),
        transfer_service_(runtime),
        server_service_(runtime) {
    keep_grpc_engine();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&sessions_service_);
    builder.RegisterService(&transfer_service_);
    builder.RegisterService(&server_service_);
    server_ = builder.BuildAndStart();
    address = "127.0.0.1:" + std::to_string(port);
    channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    sessions = v1::Sessions::NewStub(channel);
    transfer = v1::BufferTransfer::NewStub(channel);
    session = create_session();
  }
  ~TransferServer() { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5)); }

  std::string create_session(std::int64_t quota_bytes = 0) {
    v1::CreateSessionRequest request;
    request.set_session_id("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2" + std::to_string(session_count_++));
    request.set_quota_bytes(quota_bytes);
    v1::Session created;
    grpc::ClientContext context;
    const grpc::Status status = sessions->CreateSession(&context, request, &created);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return created.name();
  }

  /// A first message without data: an array of that many bytes.
  v1::WriteBufferRequest first(std::size_t bytes) const {
    v1::WriteBufferRequest message;
    message.mutable_spec()->set_session(session);
    message.mutable_spec()->mutable_spec()->set_element_type(v1::UINT8);
    message.mutable_spec()->mutable_spec()->add_shape(static_cast<std::int64_t>(bytes));
    return message;
  }

  /// A correct upload of `data`, message by message.
  std::vector<v1::WriteBufferRequest> messages(const std::string& data,
                                               std::size_t chunk = server::kMaxChunkBytes) const {
    std::vector<v1::WriteBufferRequest> result;
    for (std::size_t offset = 0; offset < data.size() || result.empty(); offset += chunk) {
      v1::WriteBufferRequest message = offset == 0 ? first(data.size()) : v1::WriteBufferRequest();
      message.set_write_offset(static_cast<std::int64_t>(offset));
      message.set_data(data.substr(offset, chunk));
      if (!message.data().empty()) message.set_crc32c(checksum_of(message.data()));
      message.set_finish_write(offset + chunk >= data.size());
      result.push_back(std::move(message));
    }
    return result;
  }

  grpc::Status upload(const std::vector<v1::WriteBufferRequest>& chunks, v1::Buffer* buffer) const {
    grpc::ClientContext context;
    const auto writer = transfer->WriteBuffer(&context, buffer);
    for (const v1::WriteBufferRequest& chunk : chunks) {
      if (!writer->Write(chunk)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }

  v1::Buffer upload(const std::string& data) const {
    v1::Buffer buffer;
    const grpc::Status status = upload(messages(data), &buffer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return buffer;
  }

  grpc::Status download(const v1::ReadBufferRequest& request,
                        std::vector<v1::ReadBufferResponse>& chunks) const {
    grpc::ClientContext context;
    const auto reader = transfer->ReadBuffer(&context, request);
    for (v1::ReadBufferResponse chunk; reader->Read(&chunk);) chunks.push_back(chunk);
    return reader->Finish();
  }

  std::string download(const std::string& name) const {
    v1::ReadBufferRequest request;
    request.set_name(name);
    std::vector<v1::ReadBufferResponse> chunks;
    const grpc::Status status = download(request, chunks);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::string data;
    for (const v1::ReadBufferResponse& chunk : chunks) {
      EXPECT_EQ(chunk.offset(), static_cast<std::int64_t>(data.size()));
      EXPECT_EQ(chunk.crc32c(), checksum_of(chunk.data()));
      data += chunk.data();
    }
    return data;
  }

  grpc::Status delete_buffer(const std::string& name) const {
    v1::DeleteBufferRequest request;
    request.set_name(name);
    google::protobuf::Empty response;
    grpc::ClientContext context;
    return sessions->DeleteBuffer(&context, request, &response);
  }

  std::size_t reserved_bytes() { return runtime.devices.front().device->budget()->reserved_bytes(); }

  /// Nothing is held on the device, and no buffer is known, soon.
  bool is_empty() {
    for (int i = 0; i < 2000; ++i) {
      if (reserved_bytes() == 0 && runtime.sessions.buffer_count() == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  server::Runtime runtime;
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Sessions::Stub> sessions;
  std::unique_ptr<v1::BufferTransfer::Stub> transfer;
  std::string session;

 private:
  static std::vector<server::DeviceSlot> one_slot(std::unique_ptr<server::Device> device) {
    std::vector<server::DeviceSlot> slots(1);
    slots[0].device = std::move(device);
    slots[0].queue = std::make_unique<server::DeviceQueue>(*slots[0].device);
    return slots;
  }

  int session_count_ = 0;
  server::SessionsService sessions_service_;
  server::TransferService transfer_service_;
  server::ServerService server_service_;
  std::unique_ptr<grpc::Server> server_;
};

inline std::unique_ptr<server::Device> host_device() {
  return server::make_cpu_device(
      {.threads = 1, .budget_bytes = TransferServer::kBudget, .landing_bytes = 8192});
}
inline std::unique_ptr<StagedDevice> staged_device() {
  return std::make_unique<StagedDevice>(TransferServer::kBudget);
}
/// Of a parameterized test: "host" or "staged".
inline std::unique_ptr<server::Device> device_of(const std::string& kind) {
  if (kind == "host") return host_device();
  return staged_device();
}

}  // namespace cumulus::testing
