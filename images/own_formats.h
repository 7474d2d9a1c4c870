#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "images/image_library.h"

// The formats of the module that needs no OpenImageIO. What goes wrong is thrown, as a std::exception.

namespace cumulus::images {

/// A file in memory that is being read. Its first picture is selected.
class PictureReader {
 public:
  PictureReader() = default;
  PictureReader(const PictureReader&) = delete;
  PictureReader& operator=(const PictureReader&) = delete;
  virtual ~PictureReader() = default;

  /// False: the file has no such picture.
  virtual bool select(int picture) { return picture == 0; }
  virtual Header header() const = 0;
  /// The samples nearest to `wanted` that read() gives.
  virtual Samples nearest(Samples wanted) const = 0;
  /// Dense rows of these channels.
  virtual void read(int first_channel, int end_channel, Samples samples, void* pixels) = 0;
};

std::unique_ptr<PictureReader> open_exr(std::string_view file);
std::unique_ptr<PictureReader> open_hdr(std::string_view file);
std::unique_ptr<PictureReader> open_png(std::string_view file);
std::unique_ptr<PictureReader> open_jpeg(std::string_view file);

/// Takes a file's bytes one after another, at a place that can be moved.
class ByteSink {
 public:
  explicit ByteSink(const WriteBytes& write) : write_(write) {}
  void write(std::string_view bytes);
  void seek(std::int64_t place) { place_ = place; }
  std::int64_t place() const { return place_; }

 private:
  const WriteBytes& write_;
  std::int64_t place_ = 0;
};

void write_exr(const Picture& picture, ByteSink& file);
void write_hdr(const Picture& picture, ByteSink& file);
void write_png(const Picture& picture, ByteSink& file);
void write_jpeg(const Picture& picture, ByteSink& file);

/// Of a picture whose channels are all stored alike: as what, of these; the last of them where none is asked
/// for.
Samples stored_as(const Picture& picture, std::initializer_list<Samples> known);

/// Exif's word on how a picture is to be turned, 1 to 8, in a block that begins with its TIFF header; 1 where
/// it says nothing.
int exif_orientation(std::string_view exif);
/// The same block for a picture that has been turned.
std::string upright_exif(std::string exif);

}  // namespace cumulus::images
