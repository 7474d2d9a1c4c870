#include "server/runtime/file_root.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

absl::Status missing(std::string_view field, std::string_view path) {
  constexpr std::size_t kMaxShown = 200;
  return not_found(
      "FILE_NOT_FOUND",
      concat(field, ": there is no file '", cut_text(path, kMaxShown),
             "' that this server reads; name a regular file below its file root, by a relative path "
             "without links"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const FileRoot>> FileRoot::open(const std::string& folder) {
  Descriptor opened(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened) {
    return absl::InvalidArgumentError(
        concat("file_root.folder: cannot open '", folder, "': ", std::strerror(errno)));
  }
  std::shared_ptr<const FileRoot> root(new FileRoot(std::move(opened)));
  const Descriptor probe = root->open_beneath(".");
  if (!probe && errno == ENOSYS) {
    return absl::InvalidArgumentError(
        "file_root.folder: this system's kernel, or its sandbox, has no openat2 (Linux 5.6), without which "
        "no "
        "folder can be closed off; leave it out");
  }
  return root;
}

Descriptor FileRoot::open_beneath(const std::string& path) const {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;  // a pipe in the folder holds nobody up
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: something was renamed meanwhile, and the kernel cannot tell whether the path left the folder.
  constexpr int kAttempts = 8;
  int number = -1;
  for (int i = 0; i < kAttempts && number < 0 && (i == 0 || errno == EAGAIN); ++i)
    number = static_cast<int>(::syscall(SYS_openat2, folder_.number(), path.c_str(), &how, sizeof(how)));
  return Descriptor(number);
}

absl::StatusOr<HostMemory> FileRoot::read(const std::string& path, std::string_view field,
                                          const Admit& admit) const {
  const bool has_nul = path.find('\0') != std::string::npos;
  const Descriptor file = has_nul || path.empty() ? Descriptor() : open_beneath(path);
  struct stat status {};
  if (!file || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return missing(field, path);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (absl::Status admitted = admit(size); !admitted.ok()) return admitted;
  HostMemory bytes = allocate_host(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.number(), bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return missing(field, path);  // it was cut short meanwhile
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace cumulus::server
