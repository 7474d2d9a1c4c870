#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What the image module offers, which alone is linked to OpenImageIO and is loaded when the first image
/// comes (load.h). One compiler builds the module and the programs, so that they share the standard library's
/// types and exceptions. Virtual functions are not among it: either side would have type information of its
/// own.
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

/// What an image file says of the picture that is selected.
struct Header {
  int width = 0;
  int height = 0;
  int depth = 0;  // more than 1: a volume
  int channels = 0;
  bool deep = false;
  Samples samples = Samples::kOther;
  std::string samples_name = {};  // for a message
  std::vector<std::string> channel_names = {};
  std::size_t bytes = 0;  // of all pixels in the file's own samples
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
  Samples stored = Samples::kOther;   // of the file, if its format has them
  AlphaColours colours = AlphaColours::kMultiplied;
};

/// Takes a file's bytes, to be put at that position; false ends the writing.
using WriteBytes = std::function<bool(std::int64_t position, std::span<const std::byte> bytes)>;

/// OpenImageIO. Formats have its names ("openexr"); pixels are dense rows. Of any thread, a file by one at a
/// time.
struct ImageLibrary {
  /// From now on reading works on the thread that asks, and starts no others.
  void (*keep_to_one_thread)();
  bool (*reads_from_memory)(const std::string& format);
  /// `bytes` have to stay where they are until the file is closed.
  OpenedFile (*open_memory)(const std::string& format, std::string_view bytes);
  OpenedFile (*open_path)(const std::string& path, AlphaColours colours);
  /// Another picture of the file, from 0 on; false: it has fewer.
  bool (*select_picture)(OpenFile& file, int picture);
  Header (*header)(const OpenFile& file);
  /// Reads these channels of the selected picture. Returns what went wrong, or nothing.
  std::string (*read)(OpenFile& file, int first_channel, int end_channel, Samples samples, void* pixels);
  /// Whether write() knows a format for files of this name.
  bool (*writes)(const std::string& path);
  /// Returns what went wrong, or nothing. Opens no file: `path` only names the format.
  std::string (*write)(const std::string& path, const Picture& picture, const WriteBytes& write_bytes);
};

/// The module's one symbol, a function without arguments that returns `const ImageLibrary*`. Its number
/// changes with anything above, so that a module and a program that do not fit are told apart.
inline constexpr const char* kImageLibrarySymbol = "cumulus_image_library_1";

}  // namespace cumulus::images
