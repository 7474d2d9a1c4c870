#pragma once

#include <cstdint>

#include "kernels/bracket_match/table.h"

namespace cumulus::bracket_match {

/// The elements of a text, on the host.
struct ByteSymbols {
  using Symbol = std::uint8_t;
  const BracketTable& table;

  bool is_open(Symbol symbol) const { return table.role[symbol] == BracketTable::Role::kOpen; }
  bool is_close(Symbol symbol) const { return table.role[symbol] == BracketTable::Role::kClose; }
  bool fit(Symbol open, Symbol close) const { return table.mate[open] == close; }
  Symbol close_of(Symbol open) const { return table.mate[open]; }
};

struct TokenSymbols {
  using Symbol = std::int32_t;

  static bool is_open(Symbol symbol) { return symbol > 0; }
  static bool is_close(Symbol symbol) { return symbol < 0; }
  static bool fit(Symbol open, Symbol close) { return open == close_of(close); }
  /// Of INT32_MIN itself, which no open is equal to.
  static Symbol close_of(Symbol open) { return static_cast<Symbol>(0u - static_cast<std::uint32_t>(open)); }
};

}  // namespace cumulus::bracket_match
