#include "cli/job/temporary_folder.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "cumulus-";
constexpr const char* kOwner = "owner";

/// Not one of another user's, whose files are none of our business, nor one without the file, which another
/// program has made.
bool is_abandoned(const fs::path& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid())
    return false;
  const int owner = ::open((folder / kOwner).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (owner < 0) return false;
  const bool abandoned = ::flock(owner, LOCK_EX | LOCK_NB) == 0;
  ::close(owner);
  return abandoned;
}

void remove_abandoned(const fs::path& parent) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path folder = entry->path();
    if (folder.filename().string().rfind(kPrefix, 0) != 0 || !is_abandoned(folder)) continue;
    std::error_code ignored;  // somebody else removes it, too
    fs::remove_all(folder, ignored);
  }
}

/// The folder for temporary ones, or /tmp where a Unix socket in one of it would have too long a path: those
/// of batch systems have names of a hundred letters.
fs::path parent_of_folders(std::error_code& error) {
  constexpr std::size_t kMaxSocketPathBytes = 107;
  const fs::path named = fs::temp_directory_path(error);
  const fs::path socket = named / absl::StrCat(kPrefix, "XXXXXX") / "socket";
  return socket.string().size() > kMaxSocketPathBytes ? fs::path("/tmp") : named;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::make() {
  std::error_code error;
  const fs::path parent = parent_of_folders(error);
  if (!error) remove_abandoned(parent);
  std::string name = (parent / absl::StrCat(kPrefix, "XXXXXX")).string();
  if (!error && ::mkdtemp(name.data()) != nullptr) {  // made with mode 0700
    std::unique_ptr<TemporaryFolder> folder(new TemporaryFolder(name));
    if (folder->lock()) return folder;
  }
  return absl::UnavailableError(absl::StrCat("cannot make a temporary folder like ", name,
                                             "; set TMPDIR to a folder that can be written"));
}

bool TemporaryFolder::lock() {
  // Under another name until it is locked: nobody finds it unlocked while its owner lives.
  const fs::path unfinished = path_ / absl::StrCat(kOwner, ".new");
  lock_ = ::open(unfinished.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  return lock_ >= 0 && ::flock(lock_, LOCK_EX) == 0 &&
         ::rename(unfinished.c_str(), (path_ / kOwner).c_str()) == 0;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // nothing is lost with a folder that stays
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace cumulus::cli
