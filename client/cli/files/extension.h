#pragma once

#include <absl/strings/ascii.h>

#include <filesystem>
#include <string>

namespace cumulus::cli {

/// In small letters, whatever those of the file's name are: ".npy" of MAP.NPY.
inline std::string extension_of(const std::filesystem::path& path) {
  return absl::AsciiStrToLower(path.extension().string());
}

}  // namespace cumulus::cli
