#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <string>

namespace cumulus::bench {

/// What gRPC itself can do: a server that throws away what it receives, or sends one chunk again and again,
/// as raw messages of the same size as Cumulus's, without a copy, a checksum or a thought. With TLS where the
/// credentials say so.
class BareServer {
 public:
  explicit BareServer(std::size_t chunk_bytes, const std::shared_ptr<grpc::ServerCredentials>& credentials =
                                                   grpc::InsecureServerCredentials());
  ~BareServer();
  const std::string& address() const { return address_; }

 private:
  class Service;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

/// The other end of it.
class BareClient {
 public:
  BareClient(
      const std::string& address, std::size_t chunk_bytes,
      const std::shared_ptr<grpc::ChannelCredentials>& credentials = grpc::InsecureChannelCredentials());
  /// Both throw std::runtime_error where the stream fails.
  void upload(std::size_t bytes);
  void download(std::size_t bytes);

 private:
  void transfer(const std::string& method, std::size_t sent_chunks);

  std::shared_ptr<grpc::Channel> channel_;
  std::string chunk_;
};

}  // namespace cumulus::bench
