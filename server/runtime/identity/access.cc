#include "server/runtime/identity/access.h"

#include <utility>

namespace cumulus::server {

absl::StatusOr<Access> Access::load(const Configuration& configuration) {
  Access access;
  absl::StatusOr<std::shared_ptr<Identity>> identity =
      Identity::load(configuration.identity, configuration.principals);
  if (!identity.ok()) return identity.status();
  access.identity = *std::move(identity);
  if (configuration.tls.given()) {
    absl::StatusOr<std::shared_ptr<Certificates>> certificates = Certificates::load(configuration.tls);
    if (!certificates.ok()) return certificates.status();
    access.certificates = *std::move(certificates);
  }
  if (!configuration.file_root.folder.empty()) {
    absl::StatusOr<std::shared_ptr<const FileRoot>> files = FileRoot::open(configuration.file_root.folder);
    if (!files.ok()) return files.status();
    access.files = *std::move(files);
  }
  return access;
}

std::vector<Reloader::Subject> Access::reloadable(const Configuration& configuration) const {
  std::vector<Reloader::Subject> subjects;
  if (!configuration.identity.token_file.empty()) {
    subjects.push_back(
        {"tokens", {configuration.identity.token_file}, [tokens = identity] { return tokens->reload(); }});
  }
  if (certificates != nullptr) {
    const TlsFiles& tls = configuration.tls;
    subjects.push_back({"certificates", {tls.certificate, tls.key, tls.client_ca}, [pair = certificates] {
                          return pair->reload();
                        }});
  }
  return subjects;
}

}  // namespace cumulus::server
