#include "server/runtime/identity/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "server/pipeline/text.h"
#include "server/runtime/descriptor.h"

namespace cumulus::server {

absl::StatusOr<std::string> read_small_file(const std::string& path, Writers writers) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.number(), &status) != 0) {
    const std::string text = concat("cannot read '", path, "': ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(text) : absl::InvalidArgumentError(text);
  }
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError(concat("'", path, "' is no file"));
  constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
  if (writers == Writers::kOwner && (status.st_mode & kOthersWrite) != 0) {
    return absl::InvalidArgumentError(concat("'", path,
                                             "' can be written by others than its owner, who could ",
                                             "let themselves in; chmod go-w ", path));
  }
  std::string text(kMaxBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.number(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return absl::InvalidArgumentError(concat("cannot read '", path, "': ", std::strerror(errno)));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxBytes) return absl::InvalidArgumentError(concat("'", path, "' has more than 1 MiB"));
  text.resize(size);
  return text;
}

}  // namespace cumulus::server
