#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "cumulus/table_format.h"
#include "proto/checksums.h"

namespace cumulus {

/// The crc32c of a sampling table (its header checked), whose own field counts as 0 and is 0 afterwards.
inline std::uint32_t take_table_checksum(std::span<std::byte> table) {
  std::memset(table.data() + offsetof(sampling::TableHeader, crc32c), 0, sizeof(std::uint32_t));
  return crc32c(table);
}

/// Writes that into the field, as .cst files have it.
inline void set_table_checksum(std::span<std::byte> table) {
  const std::uint32_t value = take_table_checksum(table);
  std::memcpy(table.data() + offsetof(sampling::TableHeader, crc32c), &value, sizeof(value));
}

}  // namespace cumulus
