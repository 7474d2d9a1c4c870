#include "cli/files/output.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/files/interruption.h"
#include "cli/files/shares.h"

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> existing_files_are_kept = false;

/// Something that takes bytes and is no file to be replaced.
bool is_special(const std::string& path) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  return type == fs::file_type::character || type == fs::file_type::block || type == fs::file_type::fifo ||
         type == fs::file_type::socket;
}

/// Also those that lead to what is not there yet.
std::string follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the system has it
  std::error_code ignored;        // what is not there is no link
  fs::path place = path;
  for (int links = 0; links < kMostLinks && fs::is_symlink(place, ignored); ++links)
    place = place.parent_path() / fs::read_symlink(place, ignored);
  return place.string();
}

std::string name_until_whole(const std::string& place) {
  return is_special(place) ? place : absl::StrCat(place, ".unfinished-", getpid());
}

absl::Status cannot_write(const std::string& path, const std::string& why) {
  return absl::PermissionDeniedError(absl::StrCat("cannot write ", path, why));
}

absl::Status already_there(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat(
      path, " is there already, and --no-clobber replaces nothing; name another file, or leave it out"));
}

/// Where the file is, or would be, without links and detours.
std::string true_place(const std::string& path) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(fs::absolute(follow_links(path)), error);
  return error ? fs::absolute(path).lexically_normal().string() : place.string();
}

}  // namespace

bool is_standard_output(const std::string& path) { return path == "-" || absl::StartsWith(path, "-."); }

void keep_existing_files() { existing_files_are_kept = true; }

absl::Status check_nothing_is_lost(const std::string& path) {
  std::error_code error;
  if (!existing_files_are_kept || is_standard_output(path) || is_special(path)) return absl::OkStatus();
  const bool there = fs::exists(fs::symlink_status(path, error));
  return there ? already_there(path) : absl::OkStatus();
}

bool are_one_file(const std::string& a, const std::string& b) {
  if (is_standard_output(a) || is_standard_output(b)) return is_standard_output(a) && is_standard_output(b);
  if (is_special(a) || is_special(b)) return false;  // take anything
  std::error_code error;
  return true_place(a) == true_place(b) || fs::equivalent(a, b, error);
}

absl::Status check_output(const std::string& path) {
  if (is_standard_output(path)) return absl::OkStatus();
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
    : path_(path),
      place_(is_standard_output(path) ? "/dev/stdout" : follow_links(path)),
      unfinished_(is_standard_output(path) ? place_ : name_until_whole(place_)) {}

OutputPlace::~OutputPlace() {
  std::error_code ignored;  // after move() there is none
  if (unfinished_ != place_) fs::remove(unfinished_, ignored);
}

absl::Status OutputPlace::move() {
  if (unfinished_ == place_) return absl::OkStatus();
  if (existing_files_are_kept) {
    // Not the check that came before the work: another may have written the file meanwhile.
    if (::renameat2(AT_FDCWD, unfinished_.c_str(), AT_FDCWD, place_.c_str(), RENAME_NOREPLACE) == 0)
      return absl::OkStatus();
    if (errno == EEXIST) return already_there(path_);
  }
  std::error_code error;
  fs::rename(unfinished_, place_, error);
  return error ? failure(error.value()) : absl::OkStatus();
}

absl::Status OutputPlace::failure(int error_number) const {
  if (error_number == ECANCELED) return absl::CancelledError("interrupted while writing " + path_);
  const std::string why = error_number == 0 ? "" : absl::StrCat(": ", std::strerror(error_number));
  if (is_standard_output(path_))
    return cannot_write("to standard output", why + "; lead it to where there is space for all of it");
  return cannot_write(path_, why + "; name a file in a folder that exists, can be written and has space");
}

OutputFile::OutputFile(const std::string& path) : place_of_file_(path) {
  if (is_standard_output(path)) {
    file_ = STDOUT_FILENO;
  } else {
    file_ = ::open(place_of_file_.unfinished().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) fail(errno);
    seekable_ = file_ >= 0 && ::lseek(file_, 0, SEEK_CUR) == 0;
  }
}

OutputFile::~OutputFile() {
  if (file_ > STDOUT_FILENO) ::close(file_);
}

void OutputFile::expect(std::int64_t bytes) {
  if (failed_ || bytes == 0 || !seekable_ || is_special(place_of_file_.unfinished())) return;
  // A file system that cannot, or has not that much, says so when the bytes come.
  (void)::fallocate(file_, FALLOC_FL_KEEP_SIZE, 0, bytes);
}

bool OutputFile::write(std::span<const std::byte> bytes) {
  constexpr std::size_t kBufferBytes = std::size_t{1} << 18;  // libpng writes a few bytes at a time
  if (failed_) return false;
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  if (holding_) {
    const auto place = static_cast<std::size_t>(place_);
    held_.resize(std::max(held_.size(), place + bytes.size()));
    std::copy_n(text, bytes.size(), held_.begin() + static_cast<std::ptrdiff_t>(place));
    place_ += static_cast<std::int64_t>(bytes.size());
    return true;
  }
  if (buffer_.size() + bytes.size() <= kBufferBytes) {
    buffer_.append(text, bytes.size());
    return true;
  }
  if (!flush()) return false;
  if (bytes.size() > kBufferBytes) return put(bytes);
  buffer_.assign(text, bytes.size());
  return true;
}

bool OutputFile::seek(std::int64_t position) {
  if (failed_ || !flush()) return false;
  if (!seekable_ && !holding_ && position != place_) return fail(ESPIPE);
  place_ = position;
  return true;
}

bool OutputFile::flush() {
  const std::string waiting = std::exchange(buffer_, "");
  return waiting.empty() || put(std::as_bytes(std::span(waiting)));
}

bool OutputFile::put(std::span<const std::byte> bytes) {
  const std::int64_t begin = place_;
  place_ += static_cast<std::int64_t>(bytes.size());
  std::atomic<bool> written = true;
  for_each_share(seekable_ ? shares_of(bytes.size()) : 1, bytes.size(),
                 [&](std::size_t /*share*/, std::size_t from, std::size_t end) {
                   const auto part = bytes.subspan(from, end - from);
                   if (!put_at(begin + static_cast<std::int64_t>(from), part)) written = false;
                 });
  return written;
}

bool OutputFile::put_at(std::int64_t place, std::span<const std::byte> bytes) {
  constexpr std::size_t kPieceBytes = std::size_t{8} << 20;  // some ms of a disk, between looks at the signal
  while (!bytes.empty()) {
    if (interrupting_signal() != 0) return fail(ECANCELED);
    const std::size_t piece = std::min(bytes.size(), kPieceBytes);
    const ssize_t written =
        seekable_ ? ::pwrite(file_, bytes.data(), piece, place) : ::write(file_, bytes.data(), piece);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    place += written;
  }
  return true;
}

bool OutputFile::fail(int error) {
  if (!failed_.exchange(true)) error_ = error;
  return false;
}

absl::Status OutputFile::commit() {
  if (!failed_) flush();
  if (!failed_ && !held_.empty()) {
    holding_ = false;
    put_at(0, std::as_bytes(std::span(held_)));
  }
  if (file_ > STDOUT_FILENO && ::close(std::exchange(file_, -1)) != 0) fail(errno);
  return failed_ ? place_of_file_.failure(error_) : place_of_file_.move();
}

}  // namespace cumulus::cli
