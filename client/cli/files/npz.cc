#include "cli/files/npz.h"

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <limits>
#include <span>

#include "cli/files/npy.h"
#include "cli/files/output.h"
#include "proto/checksums.h"

namespace cumulus::cli {
namespace {

// Sizes and offsets are 32-bit numbers, and the archive's own records need some room.
constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::uint32_t>::max() - (1u << 16);

/// Little-endian fields of the zip format (PKWARE's APPNOTE, 4.3).
class Fields {
 public:
  Fields& u16(std::uint32_t value) { return put(value, 2); }
  Fields& u32(std::uint64_t value) { return put(value, 4); }
  Fields& text(const std::string& text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Fields& put(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

struct Entry {
  std::string name;
  std::uint32_t crc;
  std::uint64_t size;
  std::uint64_t offset;
};

/// What the local header and the central directory say alike: version, flags, stored, 1 January 1980.
Fields& add_description(Fields& fields, const Entry& entry) {
  return fields.u16(20)
      .u16(0)
      .u16(0)
      .u16(0)
      .u16(0x21)
      .u32(entry.crc)
      .u32(entry.size)
      .u32(entry.size)
      .u16(static_cast<std::uint32_t>(entry.name.size()));
}

std::string local_header(const Entry& entry) {
  Fields fields;
  fields.u32(0x04034b50);
  return add_description(fields, entry).u16(0).text(entry.name).bytes();
}

std::string directory_record(const Entry& entry) {
  Fields fields;
  fields.u32(0x02014b50).u16(20);
  add_description(fields, entry).u16(0).u16(0).u16(0).u16(0).u32(0).u32(entry.offset).text(entry.name);
  return fields.bytes();
}

std::string end_record(std::size_t count, std::uint64_t offset, std::uint64_t size) {
  const auto entries = static_cast<std::uint32_t>(count);
  return Fields()
      .u32(0x06054b50)
      .u16(0)
      .u16(0)
      .u16(entries)
      .u16(entries)
      .u32(size)
      .u32(offset)
      .u16(0)
      .bytes();
}

}  // namespace

absl::Status write_npz(const std::string& path,
                       const std::vector<std::pair<std::string, ArrayView>>& arrays) {
  OutputFile file(path);
  std::uint64_t written = 0;
  const auto put = [&](std::span<const std::byte> bytes) {
    file.write(bytes);
    written += bytes.size();
  };
  const auto put_text = [&](const std::string& text) { put(std::as_bytes(std::span(text))); };
  std::string directory;
  for (const auto& [name, array] : arrays) {
    const std::string header = npy_header(npy_descr(array.type()), array.shape());
    const auto header_bytes = std::as_bytes(std::span(header));
    const std::uint64_t size = header.size() + array.bytes().size();
    if (written + size > kMaxBytes) {
      return absl::OutOfRangeError(
          absl::StrCat("the arrays are too large for ", path, ": a .npz file of this kind ends at 4 GiB"));
    }
    const Entry entry{name + ".npy", crc32_of_zip(array.bytes(), crc32_of_zip(header_bytes)), size, written};
    put_text(local_header(entry));
    put_text(header);
    put(array.bytes());
    directory += directory_record(entry);
  }
  const std::uint64_t offset = written;
  put_text(directory);
  put_text(end_record(arrays.size(), offset, directory.size()));
  return file.commit();
}

}  // namespace cumulus::cli
