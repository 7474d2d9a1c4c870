#include "cli/files/npz_reader.h"

#include <absl/strings/str_cat.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <sstream>
#include <utility>

#include "cli/files/input.h"
#include "cli/files/npy.h"
#include "proto/checksums.h"

namespace cumulus::cli {
namespace {

// The records of the zip format (PKWARE's APPNOTE, 4.3) that matter here, without their variable parts.
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kDirectoryBytes = 46;
constexpr std::size_t kLocalBytes = 30;
constexpr std::size_t kMostComment = 65535;
constexpr std::uint32_t kStored = 0;
constexpr std::uint32_t kDeflated = 8;
/// No deflated bytes stand for more than so many times as many.
constexpr std::uint64_t kMostInflation = 1032;

absl::Status no_archive(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", input_name(path), ": ", what,
                   "; a .npz file below 4 GiB, of numpy.savez or numpy.savez_compressed, is right"));
}

std::uint32_t number(const std::string& bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i - 1]);
  }
  return value;
}

/// `count` bytes from `offset` on, or fewer where the file ends.
std::string read_bytes(std::istream& file, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return bytes;
}

std::uint64_t size_of(std::istream& file) {
  file.clear();
  file.seekg(0, std::ios::end);
  return static_cast<std::uint64_t>(file.tellg());
}

/// The central directory; empty where the file does not end as an archive.
std::string read_directory(std::istream& file) {
  const std::uint64_t size = size_of(file);
  const std::uint64_t tail_bytes = std::min<std::uint64_t>(size, kEndBytes + kMostComment);
  const std::string tail = read_bytes(file, size - tail_bytes, tail_bytes);
  const std::size_t end = tail.rfind("PK\x05\x06");
  if (end == std::string::npos || tail.size() - end < kEndBytes) return "";
  const std::uint64_t bytes = number(tail, end + 12, 4);
  const std::uint64_t offset = number(tail, end + 16, 4);
  if (bytes > size || offset > size - bytes) return "";
  return read_bytes(file, offset, bytes);
}

/// What the directory says of an array.
struct DirectoryEntry {
  std::string name;
  std::uint32_t method;
  std::uint32_t crc;
  std::uint32_t packed_bytes;
  std::uint32_t bytes;
  std::uint32_t offset;
};

DirectoryEntry entry_at(const std::string& directory, std::size_t at) {
  return {directory.substr(at + kDirectoryBytes, number(directory, at + 28, 2)),
          number(directory, at + 10, 2),
          number(directory, at + 16, 4),
          number(directory, at + 20, 4),
          number(directory, at + 24, 4),
          number(directory, at + 42, 4)};
}

/// Empty where `packed` is not what the entry says.
std::string inflate(std::string packed, const DirectoryEntry& entry) {
  if (packed.size() != entry.packed_bytes || entry.bytes > kMostInflation * packed.size()) return "";
  std::string bytes(entry.bytes, '\0');
  inflate_state state;
  isal_inflate_init(&state);
  state.next_in = reinterpret_cast<std::uint8_t*>(packed.data());
  state.avail_in = entry.packed_bytes;
  state.next_out = reinterpret_cast<std::uint8_t*>(bytes.data());
  state.avail_out = entry.bytes;
  const bool whole = isal_inflate(&state) == ISAL_DECOMP_OK && state.block_state == ISAL_BLOCK_FINISH &&
                     state.avail_out == 0;
  return whole && crc32_of_zip(std::as_bytes(std::span(bytes))) == entry.crc ? bytes : "";
}

absl::StatusOr<Array> read_entry(std::istream& file, const DirectoryEntry& entry, const std::string& path) {
  const std::string place = absl::StrCat(path, " (", entry.name, ")");
  const std::string local = read_bytes(file, entry.offset, kLocalBytes);
  if (local.size() < kLocalBytes || local.compare(0, 4, "PK\x03\x04") != 0) {
    return no_archive(path, "its directory points nowhere");
  }
  const std::uint64_t begin =
      std::uint64_t{entry.offset} + kLocalBytes + number(local, 26, 2) + number(local, 28, 2);
  if (entry.method == kDeflated) {
    const std::uint64_t size = size_of(file);
    const std::uint64_t left = size - std::min(begin, size);
    std::string bytes =
        inflate(read_bytes(file, begin, std::min<std::uint64_t>(entry.packed_bytes, left)), entry);
    if (bytes.empty()) return no_archive(path, absl::StrCat("its array ", entry.name, " is damaged"));
    std::istringstream inflated(std::move(bytes));
    return read_npy(inflated, place);
  }
  if (entry.method != kStored) {
    return no_archive(path,
                      absl::StrCat("its array ", entry.name, " is compressed by method ", entry.method));
  }
  file.clear();
  file.seekg(static_cast<std::streamoff>(begin));
  return read_npy(file, place);
}

}  // namespace

absl::StatusOr<std::map<std::string, Array>> read_npz(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<std::istream>> opened = open_stream(path, "a .npz file");
  if (!opened.ok()) return opened.status();
  std::istream& file = **opened;
  const std::string directory = read_directory(file);
  if (directory.empty()) return no_archive(path, "it does not end as a .npz file");
  std::map<std::string, Array> arrays;
  for (std::size_t at = 0; at + kDirectoryBytes <= directory.size();) {
    if (directory.compare(at, 4, "PK\x01\x02") != 0) return no_archive(path, "its directory is damaged");
    const DirectoryEntry entry = entry_at(directory, at);
    absl::StatusOr<Array> array = read_entry(file, entry, path);
    if (!array.ok()) return array.status();
    std::string name = entry.name;
    if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0) name.resize(name.size() - 4);
    arrays.insert_or_assign(std::move(name), *std::move(array));
    at += kDirectoryBytes + entry.name.size() + number(directory, at + 30, 2) + number(directory, at + 32, 2);
  }
  return arrays;
}

}  // namespace cumulus::cli
