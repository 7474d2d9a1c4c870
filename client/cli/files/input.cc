#include "cli/files/input.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>

#include "cli/files/extension.h"
#include "cli/files/interruption.h"

namespace cumulus::cli {
namespace {

absl::Status cannot_read(const std::string& path, int error) {
  const std::string text = absl::StrCat("cannot open ", path, ": ", std::strerror(error));
  return error == EACCES ? absl::PermissionDeniedError(text + "; name a file that you may read")
                         : absl::NotFoundError(text + "; name a file that exists");
}

/// Waits until there is something to read, which a pipe may never have; false after interrupt().
bool wait_for_bytes(int file) {
  constexpr int kLookMilliseconds = 50;
  pollfd waited{file, POLLIN, 0};
  while (interrupting_signal() == 0) {
    if (::poll(&waited, 1, kLookMilliseconds) != 0) return true;
  }
  return false;
}

}  // namespace

bool is_standard_input(const std::string& path) { return path == "-"; }

std::string input_name(const std::string& path) { return is_standard_input(path) ? "standard input" : path; }

absl::Status refuse_folder(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": it is a folder; name a file"));
}

absl::Status FileBytes::map(int file, std::size_t size) {
  void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED) return read_to_end(file);
  (void)::madvise(data, size, MADV_WILLNEED);
  bytes_ = {static_cast<std::byte*>(data), size};
  mapped_ = true;
  return absl::OkStatus();
}

absl::Status FileBytes::read_to_end(int file) {
  std::array<char, 1 << 16> part{};
  while (true) {
    if (!wait_for_bytes(file)) return absl::CancelledError("interrupted");
    const ssize_t count = ::read(file, part.data(), part.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return absl::DataLossError(std::strerror(errno));
    if (count == 0) break;
    read_.append(part.data(), static_cast<std::size_t>(count));
  }
  bytes_ = std::as_writable_bytes(std::span(read_));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<FileBytes>> FileBytes::open(const std::string& path) {
  // Standard input can be read only once, and more than one place may want to look at it.
  static std::mutex mutex;
  static std::shared_ptr<FileBytes> standard_input;
  const std::lock_guard lock(mutex);
  const bool standard = is_standard_input(path);
  if (standard && standard_input != nullptr) return standard_input;
  if (absl::Status named = standard ? absl::OkStatus() : refuse_folder(path); !named.ok()) return named;
  // Of a pipe, whoever writes there may come later.
  const int file = standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return cannot_read(path, errno);
  const std::shared_ptr<FileBytes> bytes(new FileBytes());
  struct stat facts {};
  const bool regular = ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0;
  const bool at_start = ::lseek(file, 0, SEEK_CUR) == 0;
  absl::Status got = regular && at_start ? bytes->map(file, static_cast<std::size_t>(facts.st_size))
                                         : bytes->read_to_end(file);
  if (!standard) ::close(file);
  if (!got.ok())
    return absl::Status(got.code(), absl::StrCat("cannot read ", input_name(path), " to its end: ",
                                                 std::string(got.message()), "; copy it anew"));
  if (standard) standard_input = bytes;
  return bytes;
}

FileBytes::~FileBytes() {
  if (mapped_) ::munmap(bytes_.data(), bytes_.size());
}

std::string input_extension(const std::string& path) {
  if (!is_standard_input(path)) return extension_of(path);
  const auto bytes = FileBytes::open(path);
  if (!bytes.ok()) return "";
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kStarts = {
      {{"\x93NUMPY", ".npy"}, {"PK\x03\x04", ".npz"}, {"ply", ".ply"}, {"CUMST", ".cst"}}};
  for (const auto& [start, extension] : kStarts) {
    if ((*bytes)->text().substr(0, start.size()) == start) return extension;
  }
  return "";
}

absl::StatusOr<std::unique_ptr<std::istream>> open_stream(const std::string& path, const std::string& kind) {
  if (is_standard_input(path)) {
    absl::StatusOr<std::string> text = read_text(path);
    if (!text.ok()) return text.status();
    return std::make_unique<std::istringstream>(*std::move(text));
  }
  if (absl::Status named = refuse_folder(path); !named.ok()) return named;
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file) return absl::NotFoundError(absl::StrCat("cannot open ", path, "; give ", kind, " that exists"));
  return file;
}

absl::StatusOr<Array> read_file(const std::string& path) {
  const auto file = FileBytes::open(path);
  if (!file.ok()) return file.status();
  const std::span<std::byte> bytes = (*file)->bytes();
  return Array::adopt(ElementType::kUint8, {static_cast<std::int64_t>(bytes.size())}, bytes,
                      [kept = *file]() mutable { kept.reset(); });
}

absl::StatusOr<std::string> read_text(const std::string& path) {
  const auto file = FileBytes::open(path);
  if (!file.ok()) return file.status();
  return std::string((*file)->text());
}

}  // namespace cumulus::cli
