#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <istream>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cumulus/array.h"

namespace cumulus::cli {

/// "-".
bool is_standard_input(const std::string& path);
/// As messages name it: the path, or "standard input".
std::string input_name(const std::string& path);

/// A stream opens a folder without a word, and then finds no bytes in it.
absl::Status refuse_folder(const std::string& path);

/// A file in memory as long as this lives: mapped, so that changes of these bytes stay here, or, of a pipe or
/// standard input, read. open() is CANCELLED after interrupt() where it would wait for bytes.
class FileBytes {
 public:
  static absl::StatusOr<std::shared_ptr<FileBytes>> open(const std::string& path);
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes();

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  std::span<std::byte> bytes() { return bytes_; }

 private:
  FileBytes() = default;
  absl::Status map(int file, std::size_t size);
  absl::Status read_to_end(int file);

  std::span<std::byte> bytes_;
  std::string read_;  // of what cannot be mapped
  bool mapped_ = false;
};

/// In small letters, what the name of an input ends with: ".npy"; of standard input, what it begins as: .npy,
/// .npz, .ply or .cst; empty for anything else.
std::string input_extension(const std::string& path);

/// A file that is read in pieces, or standard input, whose bytes are kept. `kind` says what is right where it
/// does not exist.
absl::StatusOr<std::unique_ptr<std::istream>> open_stream(const std::string& path, const std::string& kind);

/// A file's bytes: uint8 [size].
absl::StatusOr<Array> read_file(const std::string& path);

/// Likewise as text.
absl::StatusOr<std::string> read_text(const std::string& path);

}  // namespace cumulus::cli
