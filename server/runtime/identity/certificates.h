#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/security/server_credentials.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "server/runtime/descriptor.h"
#include "server/runtime/identity/settings.h"

namespace cumulus::server {

/// A file in memory with a path, /proc/self/fd/N, at which others of this process open it. What it holds
/// changes as a whole: who opens it reads the old text or the new one. No key lies on a disk for it.
class PublishedText {
 public:
  /// Throws where the kernel gives no memory.
  explicit PublishedText(const std::string& text);
  void replace(const std::string& text);
  std::string path() const;

 private:
  Descriptor make(const std::string& text);

  int version_ = 0;
  Descriptor file_;
};

/// The server's certificate and key, and the authorities of its clients' certificates, as gRPC's file watcher
/// reads them, within a second. It would take a pair that does not match, and answer nobody until it does: so
/// it gets to see only what has been checked here. Connections that are open keep what they began with.
class Certificates {
 public:
  /// NOT_FOUND or INVALID_ARGUMENT naming the file that is wrong.
  static absl::StatusOr<std::shared_ptr<Certificates>> load(const TlsFiles& files);

  std::shared_ptr<grpc::ServerCredentials> credentials() const;
  /// Reads the files anew; where something is wrong with them, what was read before stays.
  absl::Status reload();
  /// When the certificate that is shown ends, or the first of those that issued it and are shown with it.
  absl::Time expiry() const { return absl::FromUnixSeconds(expiry_); }

 private:
  struct Texts {
    std::string pair;  // certificates and key
    std::string client_ca;
    absl::Time expiry;
  };
  static absl::StatusOr<Texts> read(const TlsFiles& files);
  Certificates(TlsFiles files, const Texts& texts)
      : files_(std::move(files)),
        pair_(texts.pair),
        client_ca_(texts.client_ca),
        expiry_(absl::ToUnixSeconds(texts.expiry)) {}

  const TlsFiles files_;
  PublishedText pair_;
  PublishedText client_ca_;
  std::atomic<std::int64_t> expiry_;  // in seconds of the Unix epoch
};

}  // namespace cumulus::server
