#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <vector>

#include "server/runtime/configuration.h"
#include "server/runtime/file_root.h"
#include "server/runtime/identity/certificates.h"
#include "server/runtime/identity/identity.h"
#include "server/runtime/identity/reloader.h"

namespace cumulus::server {

/// What decides who may do what, as the configuration has it.
struct Access {
  std::shared_ptr<Identity> identity;
  std::shared_ptr<Certificates> certificates;  // null: there is no TLS
  std::shared_ptr<const FileRoot> files;       // null: requests name no files
  std::vector<Reloader::Subject> reloadable;   // what may change while the server runs

  /// Reads the files that the configuration names; the error names the one that is wrong.
  static absl::StatusOr<Access> load(const Configuration& configuration);
};

}  // namespace cumulus::server
