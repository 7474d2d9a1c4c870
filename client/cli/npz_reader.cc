#include "cli/npz_reader.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <utility>

#include "cli/npy_file.h"

namespace cumulus::cli {
namespace {

// The records of the zip format (PKWARE's APPNOTE, 4.3) that matter here, without their variable parts.
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kDirectoryBytes = 46;
constexpr std::size_t kLocalBytes = 30;
constexpr std::size_t kMostComment = 65535;

absl::Status no_archive(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", path, ": ", what,
                   "; a .npz file below 4 GiB without compression, of numpy.savez, is right"));
}

std::uint32_t number(const std::string& bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i - 1]);
  }
  return value;
}

/// `count` bytes from `offset` on, or fewer where the file ends.
std::string read_bytes(std::ifstream& file, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return bytes;
}

/// The central directory; empty where the file does not end as an archive.
std::string read_directory(std::ifstream& file) {
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(file.tellg());
  const std::uint64_t tail_bytes = std::min<std::uint64_t>(size, kEndBytes + kMostComment);
  const std::string tail = read_bytes(file, size - tail_bytes, tail_bytes);
  const std::size_t end = tail.rfind("PK\x05\x06");
  if (end == std::string::npos || tail.size() - end < kEndBytes) return "";
  const std::uint64_t bytes = number(tail, end + 12, 4);
  const std::uint64_t offset = number(tail, end + 16, 4);
  if (bytes > size || offset > size - bytes) return "";
  return read_bytes(file, offset, bytes);
}

absl::StatusOr<Array> read_entry(std::ifstream& file, std::uint64_t offset, const std::string& place,
                                 const std::string& path) {
  const std::string local = read_bytes(file, offset, kLocalBytes);
  if (local.size() < kLocalBytes || local.compare(0, 4, "PK\x03\x04") != 0) {
    return no_archive(path, "its directory points nowhere");
  }
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset + kLocalBytes + number(local, 26, 2) + number(local, 28, 2)));
  return read_npy(file, place);
}

}  // namespace

absl::StatusOr<std::map<std::string, Array>> read_npz(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path, "; give a .npz file that exists"));
  const std::string directory = read_directory(file);
  if (directory.empty()) return no_archive(path, "it does not end as a .npz file");
  std::map<std::string, Array> arrays;
  for (std::size_t at = 0; at + kDirectoryBytes <= directory.size();) {
    if (directory.compare(at, 4, "PK\x01\x02") != 0) return no_archive(path, "its directory is damaged");
    const std::size_t name_bytes = number(directory, at + 28, 2);
    std::string name = directory.substr(at + kDirectoryBytes, name_bytes);
    if (number(directory, at + 10, 2) != 0)
      return no_archive(path, absl::StrCat("its array ", name, " is compressed"));
    absl::StatusOr<Array> array =
        read_entry(file, number(directory, at + 42, 4), absl::StrCat(path, " (", name, ")"), path);
    if (!array.ok()) return array.status();
    if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0) name.resize(name.size() - 4);
    arrays.insert_or_assign(std::move(name), *std::move(array));
    at += kDirectoryBytes + name_bytes + number(directory, at + 30, 2) + number(directory, at + 32, 2);
  }
  return arrays;
}

}  // namespace cumulus::cli
