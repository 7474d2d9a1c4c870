#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cumulus::server {

/// What a PNG says before anything of it is decompressed.
struct PngChunks {
  struct Size {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    int channels = 0;  // of the picture as it is decoded, without what a tRNS chunk adds
    int bytes_per_channel = 0;
  };
  std::optional<Size> size;            // absent: the file does not begin with a header chunk
  std::vector<std::string_view> kept;  // the file without the chunks that do not change a pixel
};

/// Takes a PNG apart without decompressing anything. Texts, profiles and times are left out, as hundreds of
/// them take seconds to inflate and nobody asks for them. What is damaged is kept, for the reader to find.
PngChunks parse_png_chunks(std::string_view file);

}  // namespace cumulus::server
