#include "server/runtime/identity/access.h"

#include <string>
#include <utility>

namespace cumulus::server {
namespace {

absl::Status load_identity(const Configuration& configuration, Access& access) {
  const std::string& token_file = configuration.identity.token_file;
  WatchedFiles files({token_file});
  absl::StatusOr<std::shared_ptr<Identity>> identity =
      Identity::load(configuration.identity, configuration.principals);
  if (!identity.ok()) return identity.status();
  access.identity = *identity;
  if (!token_file.empty()) {
    access.reloadable.push_back(
        {"tokens", std::move(files), [tokens = access.identity] { return tokens->reload(); }});
  }
  return absl::OkStatus();
}

absl::Status load_certificates(const TlsFiles& tls, Access& access) {
  WatchedFiles files({tls.certificate, tls.key, tls.client_ca});
  absl::StatusOr<std::shared_ptr<Certificates>> certificates = Certificates::load(tls);
  if (!certificates.ok()) return certificates.status();
  access.certificates = *certificates;
  access.reloadable.push_back(
      {"certificates", std::move(files), [pair = access.certificates] { return pair->reload(); }});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Access> Access::load(const Configuration& configuration) {
  Access access;
  if (absl::Status loaded = load_identity(configuration, access); !loaded.ok()) return loaded;
  if (configuration.tls.given()) {
    if (absl::Status loaded = load_certificates(configuration.tls, access); !loaded.ok()) return loaded;
  }
  if (!configuration.file_root.folder.empty()) {
    absl::StatusOr<std::shared_ptr<const FileRoot>> files = FileRoot::open(configuration.file_root.folder);
    if (!files.ok()) return files.status();
    access.files = *std::move(files);
  }
  return access;
}

}  // namespace cumulus::server
