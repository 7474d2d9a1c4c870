#pragma once

#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "cumulus/v1/server.grpc.pb.h"
#include "cumulus/v1/sessions.grpc.pb.h"
#include "cumulus/v1/transfer.grpc.pb.h"
#include "server/operations/operations_service.h"
#include "server/runtime/lifecycle.h"
#include "server/runtime/open_devices.h"
#include "server/runtime/runtime.h"
#include "server/runtime/shared_memory/service.h"
#include "server/runtime/transfer/transfer_service.h"
#include "server/services/server_service.h"
#include "server/services/sessions_service.h"
#include "tests/support/certificates.h"
#include "tests/support/grpc_engine.h"
#include "tests/support/temporary_folder.h"

namespace cumulus::testing {

/// A whole server on TLS and on a Unix socket, with tokens and client certificates.
class SecureServer {
 public:
  SecureServer() : authority_("Cumulus test authority") {
    write_pair(TestCertificate("server-1", "DNS:localhost", &authority_));
    write_text(folder_ / "ca.pem", authority_.certificate());
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
    write_text(folder_ / "tokens", "");
    std::filesystem::permissions(folder_ / "tokens",
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  ~SecureServer() {
    if (lifecycle_)
      lifecycle_->drain({absl::ZeroDuration(), absl::Milliseconds(200), absl::Seconds(2)}, *runtime);
  }

  /// What start() serves with; to be changed before.
  server::Configuration settings() {
    server::Configuration settings = server::default_configuration();
    settings.listen = {"localhost:0", "unix:" + (folder_ / "socket")};
    settings.devices.backend = server::Backend::kCpu;
    settings.devices.cpu_threads = 2;
    settings.devices.cpu_memory_bytes = std::size_t{64} << 20;
    settings.channelz = true;
    settings.tls = {folder_ / "server.pem", folder_ / "server.key", folder_ / "ca.pem"};
    settings.identity.token_file = folder_ / "tokens";
    settings.identity.certificates = true;
    settings.identity.certificate_roles = {{"ops", server::Role::kAdmin}};
    return settings;
  }
  void start(server::Configuration settings) {
    keep_grpc_engine();
    auto devices = server::open_devices(settings);
    ASSERT_TRUE(devices.ok()) << devices.status();
    auto identity_loaded = server::Identity::load(settings.identity, settings.principals);
    ASSERT_TRUE(identity_loaded.ok()) << identity_loaded.status();
    identity = *identity_loaded;
    if (settings.tls.given()) {
      auto certificates_loaded = server::Certificates::load(settings.tls);
      ASSERT_TRUE(certificates_loaded.ok()) << certificates_loaded.status();
      certificates = *certificates_loaded;
    }
    runtime = std::make_unique<server::Runtime>(settings, *std::move(devices), nullptr, identity);
    operations_ = server::make_operations_service(*runtime);
    sessions_ = std::make_unique<server::SessionsService>(*runtime);
    transfer_ = std::make_unique<server::TransferService>(*runtime);
    shared_ = std::make_unique<server::SharedMemoryService>(*runtime, *transfer_, nullptr);
    server_ = std::make_unique<server::ServerService>(*runtime);
    auto lifecycle = server::ServerLifecycle::start(
        settings, {operations_.get(), sessions_.get(), transfer_.get(), shared_.get(), server_.get()},
        {identity, certificates});
    ASSERT_TRUE(lifecycle.ok()) << lifecycle.status();
    lifecycle_ = std::make_unique<server::ServerLifecycle>(*std::move(lifecycle));
    ASSERT_TRUE(lifecycle_->announce(settings, {"cumulus.v1.Server"}).ok());
  }

  std::string address() const { return lifecycle_->addresses().front(); }
  std::string socket() const { return lifecycle_->addresses().back(); }
  const TemporaryFolder& folder() const { return folder_; }
  const TestCertificate& authority() const { return authority_; }

  void write_pair(const TestCertificate& certificate) {
    write_text(folder_ / "server.pem", certificate.certificate());
    write_text(folder_ / "server.key", certificate.key());
  }
  std::string add_token(const std::string& name, server::Role role) {
    auto token = server::add_token(folder_ / "tokens", name, role);
    EXPECT_TRUE(token.ok()) << token.status();
    if (identity != nullptr) {
      EXPECT_TRUE(identity->reload().ok());
    }
    return *token;
  }

  /// A connection of its own, over TLS, of a client with that certificate.
  std::shared_ptr<grpc::Channel> channel(const TestCertificate* client = nullptr) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = authority_.certificate();
    if (client != nullptr) {
      options.pem_cert_chain = client->certificate();
      options.pem_private_key = client->key();
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address(), grpc::SslCredentials(options), arguments);
  }

  std::unique_ptr<server::Runtime> runtime;
  std::shared_ptr<server::Identity> identity;
  std::shared_ptr<server::Certificates> certificates;

 private:
  TemporaryFolder folder_;
  const TestCertificate authority_;
  std::unique_ptr<grpc::Service> operations_;
  std::unique_ptr<server::SessionsService> sessions_;
  std::unique_ptr<server::TransferService> transfer_;
  std::unique_ptr<server::SharedMemoryService> shared_;
  std::unique_ptr<server::ServerService> server_;
  std::unique_ptr<server::ServerLifecycle> lifecycle_;
};

/// One client, with the token that it shows.
class Caller {
 public:
  explicit Caller(std::shared_ptr<grpc::Channel> channel, std::string token = "")
      : channel_(std::move(channel)), token_(std::move(token)) {}

  void prepare(grpc::ClientContext& context) const {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
  }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  grpc::Status capabilities(v1::Capabilities* answer = nullptr) const {
    v1::Capabilities ignored;
    grpc::ClientContext context;
    prepare(context);
    return v1::Server::NewStub(channel_)->GetCapabilities(&context, {},
                                                          answer != nullptr ? answer : &ignored);
  }
  grpc::Status create_session(std::string* name, char last_digit = '0') const {
    v1::CreateSessionRequest request;
    request.set_session_id(absl::StrCat("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2", std::string(1, last_digit)));
    v1::Session session;
    grpc::ClientContext context;
    prepare(context);
    const grpc::Status status = v1::Sessions::NewStub(channel_)->CreateSession(&context, request, &session);
    *name = session.name();
    return status;
  }
  /// 0 where there is no such session.
  std::int64_t quota_of(const std::string& name) const {
    v1::GetSessionRequest request;
    request.set_name(name);
    v1::Session session;
    grpc::ClientContext context;
    prepare(context);
    v1::Sessions::NewStub(channel_)->GetSession(&context, request, &session);
    return session.quota_bytes();
  }
  grpc::Status get_session(const std::string& name) const {
    v1::GetSessionRequest request;
    request.set_name(name);
    v1::Session session;
    grpc::ClientContext context;
    prepare(context);
    return v1::Sessions::NewStub(channel_)->GetSession(&context, request, &session);
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::string token_;
};

}  // namespace cumulus::testing
