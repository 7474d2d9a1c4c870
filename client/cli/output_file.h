#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <fstream>
#include <span>
#include <string>

namespace cumulus::cli {

/// A file that is there whole or not at all: written beside its place, moved into it by commit().
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::span<const std::byte> bytes);

  /// Says what went wrong with any of the writing.
  absl::Status commit();

 private:
  const std::string path_;
  const std::string unfinished_;
  std::ofstream stream_;
};

}  // namespace cumulus::cli
