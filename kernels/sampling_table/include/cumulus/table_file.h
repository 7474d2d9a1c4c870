#pragma once

// Opens .cst files and tables in memory for cumulus/sampling.h, with every check that sampling relies on:
// size, version and checksum. C++17, host only, standard library only; throws nothing but what std::vector
// throws, so that it also compiles with -fno-exceptions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "cumulus/table_format.h"
#include "cumulus/table_view.h"

namespace cumulus::sampling {

namespace detail {

/// CRC-32C (Castagnoli), eight bytes a step ("slicing by 8", Kounavis and Berry, 2005).
class Crc32c {
 public:
  Crc32c() {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
      tables_[0][byte] = crc;
    }
    for (std::size_t slice = 1; slice < tables_.size(); ++slice) {
      for (std::size_t byte = 0; byte < 256; ++byte) {
        const std::uint32_t before = tables_[slice - 1][byte];
        tables_[slice][byte] = before >> 8 ^ tables_[0][before & 0xFF];
      }
    }
  }

  /// Goes on with `crc`, which is 0 at first.
  std::uint32_t extend(std::uint32_t crc, const unsigned char* bytes, std::size_t size) const {
    crc = ~crc;
    for (; size >= 8; size -= 8, bytes += 8) {
      std::uint32_t low = 0;
      std::uint32_t high = 0;
      std::memcpy(&low, bytes, 4);
      std::memcpy(&high, bytes + 4, 4);
      low ^= crc;
      crc = tables_[7][low & 0xFF] ^ tables_[6][low >> 8 & 0xFF] ^ tables_[5][low >> 16 & 0xFF] ^
            tables_[4][low >> 24] ^ tables_[3][high & 0xFF] ^ tables_[2][high >> 8 & 0xFF] ^
            tables_[1][high >> 16 & 0xFF] ^ tables_[0][high >> 24];
    }
    for (; size > 0; --size, ++bytes) crc = crc >> 8 ^ tables_[0][(crc ^ *bytes) & 0xFF];
    return ~crc;
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 8> tables_{};
};

/// Of a table's bytes, those of the checksum itself taken as 0.
inline std::uint32_t checksum_of(const unsigned char* table, std::size_t size) {
  static const Crc32c kCrc;
  constexpr std::size_t kAt = offsetof(TableHeader, crc32c);
  constexpr unsigned char kZeros[sizeof(std::uint32_t)] = {};
  std::uint32_t value = kCrc.extend(0, table, kAt);
  value = kCrc.extend(value, kZeros, sizeof(kZeros));
  return kCrc.extend(value, table + kAt + sizeof(kZeros), size - kAt - sizeof(kZeros));
}

}  // namespace detail

/// Why a table is refused, beyond what its header says.
enum class OpenError {
  kNone,
  kCannotOpen,
  kCannotRead,
  kNotAligned,
  kBadHeader,  ///< MappedTable::header_error says what is wrong with it.
  kWrongChecksum,
  kNoSuchLayer,
};

/// What is wrong and what would be right, as a clause.
inline const char* describe(OpenError error) {
  switch (error) {
    case OpenError::kNone:
      return "the table is valid";
    case OpenError::kCannotOpen:
      return "the file cannot be opened; name one that exists and may be read";
    case OpenError::kCannotRead:
      return "the file cannot be read to its end";
    case OpenError::kNotAligned:
      return "the table does not begin at a multiple of 8 bytes in memory; map or copy it to one";
    case OpenError::kBadHeader:
      return "the table's header is wrong";
    case OpenError::kWrongChecksum:
      return "the table's bytes do not match the crc32c in its header; copy the file anew";
    case OpenError::kNoSuchLayer:
      return "the table has fewer layers than that; they are counted from 0";
  }
  return "unknown error";
}

enum class Checksum {
  kVerify,         ///< As files have it; reads the whole table once.
  kVerifyIfThere,  ///< A table that was downloaded has 0 for it, and nothing to verify.
  kSkip,           ///< Of a file that one trusts, or maps so as not to read all of it.
};

/// A table in memory that is somebody else's.
struct MappedTable {
  TableView view;  ///< For `sample` and `pdf`; valid as long as the memory, where there is no error.
  OpenError error = OpenError::kNone;
  TableError header_error = TableError::kNone;

  explicit operator bool() const { return error == OpenError::kNone; }
  /// What is wrong and what would be right, as a clause.
  const char* what() const {
    return error == OpenError::kBadHeader ? describe(header_error) : describe(error);
  }
};

/// Checks the `size` bytes of a table, a .cst file that has been mapped or a table that has been downloaded.
inline MappedTable map_table(const void* bytes, std::size_t size, std::uint32_t layer = 0,
                             Checksum checksum = Checksum::kVerifyIfThere) {
  MappedTable mapped;
  const auto* data = static_cast<const unsigned char*>(bytes);
  if (reinterpret_cast<std::uintptr_t>(data) % 8 != 0) {
    mapped.error = OpenError::kNotAligned;
    return mapped;
  }
  TableHeader& header = mapped.view.header;
  mapped.header_error = parse_header(data, size, size, header);
  if (mapped.header_error != TableError::kNone) {
    mapped.error = OpenError::kBadHeader;
  } else if ((checksum == Checksum::kVerify ||
              (checksum == Checksum::kVerifyIfThere && header.crc32c != 0)) &&
             detail::checksum_of(data, size) != header.crc32c) {
    mapped.error = OpenError::kWrongChecksum;
  } else if (layer >= header.layers) {
    mapped.error = OpenError::kNoSuchLayer;
  } else {
    mapped.view.data = data;
    mapped.view.layer = layer;
  }
  return mapped;
}

/// A .cst file's table in memory of its own. Movable; `view` stays valid when it is moved.
struct OpenedTable : MappedTable {
  std::vector<std::uint64_t> memory;  ///< The file's bytes, aligned to 8.
};

namespace detail {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

inline OpenError read_words(const char* path, std::vector<std::uint64_t>& words, std::size_t& size) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path, "rb"));
  if (file == nullptr) return OpenError::kCannotOpen;
  constexpr std::size_t kStep = std::size_t{1} << 20;
  std::size_t read = 0;
  do {
    words.resize((size + kStep) / sizeof(std::uint64_t) + 1);
    read = std::fread(reinterpret_cast<unsigned char*>(words.data()) + size, 1, kStep, file.get());
    size += read;
  } while (read == kStep);
  return std::ferror(file.get()) != 0 ? OpenError::kCannotRead : OpenError::kNone;
}

}  // namespace detail

/// Reads a .cst file and checks it. Test the result before its view is used; what() says what is wrong.
inline OpenedTable open_table(const char* path, std::uint32_t layer = 0) {
  OpenedTable opened;
  std::size_t size = 0;
  opened.error = detail::read_words(path, opened.memory, size);
  if (opened.error == OpenError::kNone) {
    static_cast<MappedTable&>(opened) = map_table(opened.memory.data(), size, layer, Checksum::kVerify);
  }
  return opened;
}

}  // namespace cumulus::sampling
