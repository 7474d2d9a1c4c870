#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"

namespace cumulus::server {

/// grpc.health.v1, of one status for all that the server serves: NOT_SERVING until set_serving(true).
/// Thread-safe.
class HealthService final : public grpc::health::v1::Health::CallbackService {
  using Request = grpc::health::v1::HealthCheckRequest;
  using Response = grpc::health::v1::HealthCheckResponse;

 public:
  HealthService();
  ~HealthService() override;

  /// The services that have the server's status; others are not known.
  void add_names(const std::vector<std::string>& names);
  void set_serving(bool serving);
  /// Every Watch ends with UNAVAILABLE, those that are yet to come at once.
  void end_watches();

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context, const Request* request,
                                  Response* response) override;
  grpc::ServerWriteReactor<Response>* Watch(grpc::CallbackServerContext* context,
                                            const Request* request) override;

 private:
  class Watcher;

  Response::ServingStatus status_of(const std::string& service) const;
  void forget(Watcher* watcher);

  mutable std::mutex mutex_;
  std::set<std::string> names_ = {""};
  bool serving_ = false;
  bool ended_ = false;
  std::set<Watcher*> watchers_;
};

}  // namespace cumulus::server
