#pragma once

#include <string>

// HTTP/2, RFC 9113, as a client of a test writes it by hand.

namespace cumulus::testing::http2 {

constexpr char kData = 0;
constexpr char kHeaders = 1;
constexpr char kResetStream = 3;
constexpr char kSettings = 4;
constexpr char kGoAway = 7;
constexpr char kContinuation = 9;
constexpr char kEndHeaders = 4;
inline const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string frame(char type, char flags, int stream, const std::string& contents) {
  const auto size = contents.size();
  return std::string{static_cast<char>(size >> 16),
                     static_cast<char>(size >> 8),
                     static_cast<char>(size),
                     type,
                     flags,
                     0,
                     static_cast<char>(stream >> 16),
                     static_cast<char>(stream >> 8),
                     static_cast<char>(stream)} +
         contents;
}

}  // namespace cumulus::testing::http2
