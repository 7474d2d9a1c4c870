#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <istream>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "cli/files/output.h"
#include "cumulus/array.h"

namespace cumulus::cli {

/// The first bytes of a .npy file (NumPy's format, version 1.0) of row-major elements: `descr` is the
/// element type as a Python expression ("'<f4'", "[('u', '<f4'), ...]").
std::string npy_header(const std::string& descr, const Shape& shape);

/// "'<f4'" and the like.
std::string npy_descr(ElementType type);

/// Whether a file is one by its name.
bool is_npy(const std::string& path);

/// Whether an input is one: by its name, and standard input by what it begins with.
bool holds_npy(const std::string& path);

/// Whether an input is a .npy file of truth values, as NumPy keeps masks.
bool holds_truth_values(const std::string& path);

/// Maps a .npy file of little-endian numbers: the array lies in the file's own memory, and what is changed of
/// it stays here. Column-major arrays are copied into row-major order, and truth values are UINT8 of 0 and 1.
/// Says what the file holds instead where it holds anything else.
absl::StatusOr<Array> read_npy(const std::string& path);

/// Likewise from a stream that stands at its beginning; `path` is for errors.
absl::StatusOr<Array> read_npy(std::istream& file, const std::string& path);

/// The records of a .npy file that consist of `floats` float32 each, FLOAT32 [records, floats]. NOT_FOUND
/// where its elements are not `descr`, which ends in ']'.
absl::StatusOr<Array> read_npy_records(const std::string& path, const std::string& descr,
                                       std::int64_t floats);

/// A .npy file of an array that is still on its way: what has come of it is written while the rest comes.
class NpyWriter {
 public:
  explicit NpyWriter(const std::string& path) : file_(path) {}
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;
  ~NpyWriter() { end(); }

  /// From now on the array's memory is filled; it has to stay until end().
  void begin(const ArrayView& array);
  /// These bytes of it are there. From any thread, one at a time.
  void take(std::int64_t begin, std::int64_t end);
  /// Waits until what has been taken is written.
  void end();
  /// Writes the array unless all of it has been, and says what went wrong with any of the writing. Without it
  /// there is no file.
  absl::Status finish(const ArrayView& array);

 private:
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  void write_until_ended();

  OutputFile file_;
  std::size_t header_bytes_ = 0;
  std::span<const std::byte> bytes_;
  std::size_t taken_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Part> waiting_;  // to be written
  bool ended_ = false;
  std::thread writer_;
};

/// An array for a file.
struct FileArray {
  Array array;
  std::unique_ptr<NpyWriter> file = nullptr;  // which it went into as it came; null: none yet
};

/// Writes an array as it is.
absl::Status write_npy(const std::string& path, const ArrayView& array);

}  // namespace cumulus::cli
