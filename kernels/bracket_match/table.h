#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cumulus {

/// What each of the 256 bytes is to bracket matching.
struct BracketTable {
  enum class Role : std::uint8_t { kNeutral, kOpen, kClose };
  std::array<Role, 256> role{};
  /// The close of an open, the open of a close; 0 for all others.
  std::array<std::uint8_t, 256> mate{};

  /// From opens and closes in turn, as "()[]{}": 1 to 128 pairs of different bytes. Throws
  /// std::invalid_argument; its text says what is wrong with `pairs` and what would be right.
  static BracketTable of_pairs(std::string_view pairs) {
    if (pairs.empty() || pairs.size() % 2 != 0) {
      throw std::invalid_argument("has " + std::to_string(pairs.size()) +
                                  " bytes; opens and closes in turn, as in \"()[]{}\", are right");
    }
    BracketTable table;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(pairs[i]);
      if (table.role[byte] != Role::kNeutral) {
        throw std::invalid_argument("has byte " + std::to_string(byte) +
                                    " twice; each open and close is a byte of its own");
      }
      table.role[byte] = i % 2 == 0 ? Role::kOpen : Role::kClose;
      table.mate[byte] = static_cast<std::uint8_t>(pairs[i ^ 1]);
    }
    return table;
  }
};

}  // namespace cumulus
