#include "bench/service/bare_stream.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace cumulus::bench {
namespace {

constexpr const char* kUpload = "/bare.Stream/Upload";
constexpr const char* kDownload = "/bare.Stream/Download/";  // and the number of chunks

grpc::ByteBuffer refer_to(const std::string& bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size(), grpc::Slice::STATIC_SLICE);
  return {&slice, 1};
}

class Reactor final : public grpc::ServerGenericBidiReactor {
 public:
  Reactor(const std::string& method, const std::string& chunk) : message_(refer_to(chunk)) {
    const std::string prefix = kDownload;
    if (method.compare(0, prefix.size(), prefix) == 0) {
      chunks_ = std::stoull(method.substr(prefix.size()));
      write();
    } else {
      StartRead(&message_);
    }
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    StartRead(&message_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) write();
    if (!ok) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  void write() {
    if (chunks_ == 0) {
      Finish(grpc::Status::OK);
      return;
    }
    --chunks_;
    StartWrite(&message_);
  }

  std::size_t chunks_ = 0;
  grpc::ByteBuffer message_;
};

}  // namespace

class BareServer::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(std::size_t chunk_bytes) : chunk_(chunk_bytes, 'b') {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Reactor(context->method(), chunk_);
  }

 private:
  const std::string chunk_;
};

BareServer::BareServer(std::size_t chunk_bytes, const std::shared_ptr<grpc::ServerCredentials>& credentials)
    : service_(std::make_unique<Service>(chunk_bytes)) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) throw std::runtime_error("the bare server cannot bind a loopback port");
  address_ = "127.0.0.1:" + std::to_string(port);
}

BareServer::~BareServer() { server_->Shutdown(); }

BareClient::BareClient(const std::string& address, std::size_t chunk_bytes,
                       const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : channel_(grpc::CreateChannel(address, credentials)), chunk_(chunk_bytes, 'b') {}

void BareClient::upload(std::size_t bytes) { transfer(kUpload, bytes / chunk_.size()); }

void BareClient::download(std::size_t bytes) {
  transfer(kDownload + std::to_string(bytes / chunk_.size()), 0);
}

void BareClient::transfer(const std::string& method, std::size_t sent_chunks) {
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  wait();
  const grpc::ByteBuffer message = refer_to(chunk_);
  for (std::size_t i = 0; i < sent_chunks; ++i) {
    call->Write(message, nullptr);
    if (!wait()) break;
  }
  call->WritesDone(nullptr);
  wait();
  grpc::ByteBuffer received;
  do {
    call->Read(&received, nullptr);
  } while (wait());
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  if (!status.ok()) throw std::runtime_error("the bare stream failed: " + status.error_message());
}

}  // namespace cumulus::bench
