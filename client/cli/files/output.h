#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cumulus::cli {

/// "-", or "-.exr" where the name has to say what is written.
bool is_standard_output(const std::string& path);

/// From now on no file that is there is replaced, by any command.
void keep_existing_files();

/// What would keep a file from being written at `path`, so that it can be said before the work is done rather
/// than after.
absl::Status check_output(const std::string& path);

/// That there is nothing to lose at `path`, after keep_existing_files().
absl::Status check_nothing_is_lost(const std::string& path);

/// Whether both names are those of one file, by whatever way each leads there.
bool are_one_file(const std::string& a, const std::string& b);

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

/// A file that is there whole or not at all, after commit(). To standard output it goes then.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Takes the disk space of what will be written. Where the file replaces another, ext4 would otherwise find
  /// room for all of it at the rename, which then takes longer than the writing.
  void expect(std::int64_t bytes);
  /// False once the disk is full, say; commit() tells why. Many bytes at once go on all processors.
  bool write(std::span<const std::byte> bytes);
  /// Whether write_at() may be called.
  bool takes_any_order() const { return seekable_ && !failed_; }
  /// Writes these bytes at `place` at once, from any thread, beside others and beside write().
  void write_at(std::int64_t place, std::span<const std::byte> bytes) { put_at(place, bytes); }
  /// Goes on writing at this byte of the file. Not of pipes, unless hold() came first.
  bool seek(std::int64_t position);
  /// Before any writing: of what goes to a pipe, keeps all in memory until commit(), so that seek() is
  /// possible.
  void hold() { holding_ = holding_ || !seekable_; }

  /// Says what went wrong with any of the writing; CANCELLED where interrupt() cut it short.
  absl::Status commit();

 private:
  bool flush();
  /// Writes at place_, which moves on.
  bool put(std::span<const std::byte> bytes);
  bool put_at(std::int64_t place, std::span<const std::byte> bytes);
  bool fail(int error);

  OutputPlace place_of_file_;
  int file_ = -1;
  bool seekable_ = false;
  bool holding_ = false;
  std::string buffer_;      // what comes at place_, and is not written yet
  std::string held_;        // the file so far, while holding
  std::int64_t place_ = 0;  // in the file
  std::atomic<bool> failed_ = false;
  std::atomic<int> error_ = 0;  // of the first failure
};

}  // namespace cumulus::cli
