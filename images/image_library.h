#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What the image modules offer: one reads and writes OpenEXR, HDR, PNG and JPEG by these formats' own
/// libraries, the other everything else by OpenImageIO. Each is loaded when it is wanted (load.h). One
/// compiler builds the modules and the programs, so that they share the standard library's types and
/// exceptions. Virtual functions are not among what they share: either side would have type information of
/// its own.
namespace cumulus::images {

enum class Samples {
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt32,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64,
  kOther,  // none of our arrays' element types
};

/// A rectangle of pixels.
struct Window {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  bool operator==(const Window&) const = default;
};

/// Something that a file says, in the words of its own format.
struct Attribute {
  std::string name;
  std::string type;
  std::string value;  // bytes, as that format's writer takes them
  bool operator==(const Attribute&) const = default;
};

/// What a file says of a picture beside its pixels. What has a field here is not among `attributes`.
struct Metadata {
  std::string format;  // whose attributes these are: "openexr"
  std::vector<Attribute> attributes;
  Window data;          // where the pixels lie
  Window display;       // what is to be seen
  int orientation = 1;  // as TIFF and Exif count, 1 to 8; how the stored rows and columns are to be turned
  std::optional<std::array<float, 8>> chromaticities;  // x and y of red, green, blue and white
  std::string compression;                             // "zip"; empty: the format's own
  std::vector<std::string> parts;                      // the names of all pictures in the file
  bool has_levels = false;                             // smaller versions of the picture beside it
};

/// What an image file says of the picture that is selected.
struct Header {
  int width = 0;
  int height = 0;
  int depth = 0;  // more than 1: a volume
  int channels = 0;
  bool deep = false;
  Samples samples = Samples::kOther;  // that hold all channels
  std::string samples_name = {};      // for a message
  std::vector<std::string> channel_names = {};
  std::vector<Samples> channel_samples = {};
  int straight_alpha = -1;  // the channel by which the file's colours are not multiplied yet
  std::size_t bytes = 0;    // of all pixels in the file's own samples
  Metadata metadata = {};
};

/// What becomes of the colours of a file that keeps them otherwise.
enum class AlphaColours { kMultiplied, kAsStored };

/// A file that is being read; its first picture is selected. The module's own.
struct OpenFile;
struct CloseFile {
  void (*close)(OpenFile*) = nullptr;
  void operator()(OpenFile* file) const { close(file); }
};
using ImageFile = std::unique_ptr<OpenFile, CloseFile>;

struct OpenedFile {
  ImageFile file = {};
  std::string error = {};  // why there is no file
};

/// A picture to write: dense rows of pixels.
struct Picture {
  int width = 0;
  int height = 0;
  int channels = 0;
  const void* pixels = nullptr;
  Samples samples = Samples::kOther;  // of `pixels`
  std::vector<Samples> stored = {};   // of the file, if its format has them: of each channel, or one for all
  AlphaColours colours = AlphaColours::kMultiplied;
  std::vector<std::string> channel_names = {};  // empty: the format's usual ones
  const Metadata* metadata = nullptr;           // of which the file keeps what its format has a place for
};

/// Takes a file's bytes, to be put at that position; false ends the writing.
using WriteBytes = std::function<bool(std::int64_t position, std::span<const std::byte> bytes)>;

/// Formats have OpenImageIO's names ("openexr"); pixels are dense rows. Of any thread, a file by one at a
/// time.
struct ImageLibrary {
  /// From now on reading works on the thread that asks, and starts no others.
  void (*keep_to_one_thread)();
  bool (*reads_from_memory)(const std::string& format);
  /// `bytes` have to stay where they are until the file is closed.
  OpenedFile (*open_memory)(const std::string& format, std::string_view bytes, AlphaColours colours);
  OpenedFile (*open_path)(const std::string& path, AlphaColours colours);
  /// Another picture of the file, from 0 on; false: it has fewer.
  bool (*select_picture)(OpenFile& file, int picture);
  Header (*header)(const OpenFile& file);
  /// Reads these channels of the selected picture. Returns what went wrong, or nothing.
  std::string (*read)(OpenFile& file, int first_channel, int end_channel, Samples samples, void* pixels);
  /// The format that write() gives files of this name; empty: it knows none.
  std::string (*format_of)(const std::string& path);
  /// Returns what went wrong, or nothing. Opens no file: `path` only names the format.
  std::string (*write)(const std::string& path, const Picture& picture, const WriteBytes& write_bytes);
};

/// A module's one symbol, a function without arguments that returns `const ImageLibrary*`. Its number
/// changes with anything above, so that a module and a program that do not fit are told apart.
inline constexpr const char* kImageLibrarySymbol = "cumulus_image_library_2";

}  // namespace cumulus::images
