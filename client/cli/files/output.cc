#include "cli/files/output.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

/// Something that takes bytes and is no file to be replaced.
bool is_special(const std::string& path) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  return type == fs::file_type::character || type == fs::file_type::block || type == fs::file_type::fifo ||
         type == fs::file_type::socket;
}

std::string follow_links(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path target = fs::weakly_canonical(path, error);
  return error ? path : target.string();
}

std::string name_until_whole(const std::string& place) {
  return is_special(place) ? place : absl::StrCat(place, ".unfinished-", getpid());
}

absl::Status cannot_write(const std::string& path, const std::string& why) {
  return absl::PermissionDeniedError(absl::StrCat("cannot write ", path, why));
}

}  // namespace

absl::Status check_output(const std::string& path) {
  const std::string place = follow_links(path);
  std::error_code error;
  if (fs::is_directory(place, error)) return cannot_write(path, ": it is a folder; name a file");
  if (is_special(place)) return absl::OkStatus();
  const fs::path parent = fs::path(place).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!fs::is_directory(folder, error)) {
    return cannot_write(path, absl::StrCat(": there is no folder ", folder, "; make it, or name another"));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return cannot_write(path, absl::StrCat(": the folder ", folder, " cannot be written (",
                                           std::strerror(errno), "); name a file in another"));
  }
  return absl::OkStatus();
}

OutputPlace::OutputPlace(const std::string& path)
    : path_(path), place_(follow_links(path)), unfinished_(name_until_whole(place_)) {}

OutputPlace::~OutputPlace() {
  std::error_code ignored;  // after move() there is none
  if (unfinished_ != place_) fs::remove(unfinished_, ignored);
}

absl::Status OutputPlace::move() {
  if (unfinished_ == place_) return absl::OkStatus();
  std::error_code error;
  fs::rename(unfinished_, place_, error);
  return error ? failure(error.value()) : absl::OkStatus();
}

absl::Status OutputPlace::failure(int error_number) const {
  return cannot_write(
      path_, absl::StrCat(error_number == 0 ? "" : ": ", error_number == 0 ? "" : std::strerror(error_number),
                          "; name a file in a folder that exists, can be written and has space"));
}

OutputFile::OutputFile(const std::string& path) : place_(path) {
  errno = 0;
  stream_.open(place_.unfinished(), std::ios::binary);
  note_failure();
}

void OutputFile::expect(std::int64_t bytes) {
  if (stream_.fail() || bytes == 0 || is_special(place_.unfinished())) return;
  const int file = open(place_.unfinished().c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  // A file system that cannot, or has not that much, says so when the bytes come.
  (void)fallocate(file, FALLOC_FL_KEEP_SIZE, 0, bytes);
  close(file);
}

bool OutputFile::write(std::span<const std::byte> bytes) {
  if (stream_.fail()) return false;
  errno = 0;
  stream_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  note_failure();
  return !stream_.fail();
}

bool OutputFile::seek(std::int64_t position) {
  if (stream_.fail()) return false;
  errno = 0;
  stream_.seekp(position);
  note_failure();
  return !stream_.fail();
}

absl::Status OutputFile::commit() {
  if (!stream_.fail()) {
    errno = 0;
    stream_.close();
    note_failure();
  }
  return stream_.fail() ? place_.failure(error_) : place_.move();
}

void OutputFile::note_failure() {
  if (stream_.fail() && error_ == 0) error_ = errno;
}

}  // namespace cumulus::cli
