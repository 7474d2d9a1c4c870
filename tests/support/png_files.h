#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdint>
#include <string>

namespace cumulus::testing {

inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  std::uint32_t state = 0xFFFFFFFF;
  for (const char byte : type + data) {
    state ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xEDB88320 : 0);
  }
  return big_endian(static_cast<std::uint32_t>(data.size())) + type + data + big_endian(~state);
}

inline std::string deflated(const std::string& data) {
  std::string result;
  google::protobuf::io::StringOutputStream bytes(&result);
  google::protobuf::io::GzipOutputStream::Options options;
  options.format = google::protobuf::io::GzipOutputStream::ZLIB;
  google::protobuf::io::GzipOutputStream stream(&bytes, options);
  google::protobuf::io::CodedOutputStream(&stream).WriteString(data);
  stream.Close();
  return result;
}

/// A gray picture: `rows` has a zero byte and `width` pixels a row. `chunks` come before its pixels.
inline std::string png_file(std::uint32_t width, std::uint32_t height, const std::string& rows,
                            const std::string& chunks = {}) {
  const std::string header = big_endian(width) + big_endian(height) + std::string("\x08\0\0\0\0", 5);
  return std::string("\x89PNG\r\n\x1a\n") + png_chunk("IHDR", header) + chunks +
         png_chunk("IDAT", deflated(rows)) + png_chunk("IEND", "");
}

/// 350 texts of 8 MiB each, in less than 3 MiB: seconds of inflating.
inline std::string png_texts() {
  const std::string text =
      png_chunk("zTXt", std::string("note\0\0", 6) + deflated(std::string((8 << 20) - 1, 'x')));
  std::string all;
  for (int i = 0; i < 350; ++i) all += text;
  return all;
}

}  // namespace cumulus::testing
