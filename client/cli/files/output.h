#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>

namespace cumulus::cli {

/// What would keep a file from being written at `path`, so that it can be said before the work is done rather
/// than after.
absl::Status check_output(const std::string& path);

/// Where a file is written until it is whole: beside its place, into which move() takes it, so that a failure
/// leaves what was there before. A link's target is replaced, not the link. What is no file (a pipe,
/// /dev/null) is written to as it is.
class OutputPlace {
 public:
  explicit OutputPlace(const std::string& path);
  OutputPlace(const OutputPlace&) = delete;
  OutputPlace& operator=(const OutputPlace&) = delete;
  ~OutputPlace();  // without move() nothing stays

  /// The name to write under.
  const std::string& unfinished() const { return unfinished_; }
  absl::Status move();
  /// "cannot write ...", with the system's reason where there is one.
  absl::Status failure(int error_number) const;

 private:
  const std::string path_;
  const std::string place_;  // path_, or where it links to
  const std::string unfinished_;
};

/// A file that is there whole or not at all, after commit().
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);

  /// Takes the disk space of what will be written. Where the file replaces another, ext4 would otherwise find
  /// room for all of it at the rename, which then takes longer than the writing.
  void expect(std::int64_t bytes);
  /// False once the disk is full, say; commit() tells why.
  bool write(std::span<const std::byte> bytes);
  /// Goes on writing at this byte of the file.
  bool seek(std::int64_t position);

  /// Says what went wrong with any of the writing.
  absl::Status commit();

 private:
  void note_failure();

  OutputPlace place_;
  std::ofstream stream_;
  int error_ = 0;  // of the first failure
};

}  // namespace cumulus::cli
