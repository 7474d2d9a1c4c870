// The module of OpenEXR, HDR, PNG and JPEG: what the border wants of it.
#include "images/own_formats.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>

#include "images/samples.h"

namespace cumulus::images {

/// A file's bytes in memory, until this ends.
class FileMapping {
 public:
  /// Throws what keeps it from being mapped.
  explicit FileMapping(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts {};
    if (file >= 0 && ::fstat(file, &facts) == 0 && facts.st_size > 0) {
      size_ = static_cast<std::size_t>(facts.st_size);
      data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    }
    const int problem = errno;
    if (file >= 0) ::close(file);
    if (data_ == MAP_FAILED) throw std::runtime_error(std::strerror(problem));
  }
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;
  ~FileMapping() { ::munmap(data_, size_); }

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = MAP_FAILED;
  std::size_t size_ = 0;
};

struct OpenFile {
  std::unique_ptr<FileMapping> mapping;  // outlives the reader, which reads from it
  std::unique_ptr<PictureReader> reader;
  AlphaColours colours = AlphaColours::kMultiplied;
};

void ByteSink::write(std::string_view bytes) {
  const bool written = write_(place_, std::as_bytes(std::span(bytes)));
  if (!written) throw std::runtime_error("its bytes cannot be written");
  place_ += static_cast<std::int64_t>(bytes.size());
}

Samples stored_as(const Picture& picture, std::initializer_list<Samples> known) {
  const Samples wanted = picture.stored.empty() ? picture.samples : picture.stored.front();
  const auto* const found = std::find(known.begin(), known.end(), wanted);
  return found == known.end() ? *(known.end() - 1) : *found;
}

namespace {

using Open = std::unique_ptr<PictureReader> (*)(std::string_view);

Open opener_of(std::string_view format) {
  if (format == "openexr") return open_exr;
  if (format == "hdr") return open_hdr;
  if (format == "png") return open_png;
  return format == "jpeg" ? open_jpeg : nullptr;
}

/// By the first bytes.
Open opener_for(std::string_view file) {
  if (file.substr(0, 4) == "\x76\x2f\x31\x01") return open_exr;
  if (file.substr(0, 2) == "#?") return open_hdr;
  if (file.substr(0, 4) == "\x89PNG") return open_png;
  return file.substr(0, 2) == "\xff\xd8" ? open_jpeg : nullptr;
}

ImageFile keep(std::unique_ptr<OpenFile> file) {
  return {file.release(), CloseFile{[](OpenFile* closed) { delete closed; }}};
}

OpenedFile open(std::unique_ptr<OpenFile> file, std::string_view bytes, Open opener) {
  if (opener == nullptr) return {{}, "it is in no format of this module"};
  try {
    file->reader = opener(bytes);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return {{}, error.what()};
  }
  return {keep(std::move(file))};
}

bool reads_from_memory(const std::string& format) { return opener_of(format) != nullptr; }

OpenedFile open_memory(const std::string& format, std::string_view bytes, AlphaColours colours) {
  auto file = std::make_unique<OpenFile>();
  file->colours = colours;
  return open(std::move(file), bytes, opener_of(format));
}

OpenedFile open_path(const std::string& path, AlphaColours colours) {
  auto file = std::make_unique<OpenFile>();
  file->colours = colours;
  try {
    file->mapping = std::make_unique<FileMapping>(path);
  } catch (const std::runtime_error& error) {
    return {{}, error.what()};
  }
  const std::string_view bytes = file->mapping->bytes();
  return open(std::move(file), bytes, opener_for(bytes));
}

bool select_picture(OpenFile& file, int picture) { return picture >= 0 && file.reader->select(picture); }

Header header(const OpenFile& file) { return file.reader->header(); }

/// Rows of these channels, as the file has them but for the kind of samples.
void read_converted(OpenFile& file, const Header& header, int first, int end, Samples samples, void* pixels) {
  const Samples nearest = file.reader->nearest(samples);
  if (nearest == samples) return file.reader->read(first, end, samples, pixels);
  const std::size_t elements = static_cast<std::size_t>(header.width) *
                               static_cast<std::size_t>(header.height) *
                               static_cast<std::size_t>(end - first);
  const std::unique_ptr<std::byte[]> own(new std::byte[elements * bytes_of(nearest)]);
  file.reader->read(first, end, nearest, own.get());
  convert(nearest, own.get(), samples, pixels, elements);
}

void read_samples(OpenFile& file, int first, int end, Samples samples, void* pixels) {
  const Header header = file.reader->header();
  const std::size_t count = static_cast<std::size_t>(header.width) * static_cast<std::size_t>(header.height);
  const int alpha = header.straight_alpha;
  const bool multiply = file.colours == AlphaColours::kMultiplied && alpha >= 0;
  if (!multiply || (alpha >= first && alpha < end)) {
    read_converted(file, header, first, end, samples, pixels);
    if (multiply) multiply_by_alpha(samples, pixels, count, end - first, alpha - first);
    return;
  }
  // The alpha stands outside of what is wanted.
  const std::size_t pixel = static_cast<std::size_t>(header.channels) * bytes_of(samples);
  const std::unique_ptr<std::byte[]> all(new std::byte[count * pixel]);
  read_converted(file, header, 0, header.channels, samples, all.get());
  multiply_by_alpha(samples, all.get(), count, header.channels, alpha);
  const std::size_t kept = static_cast<std::size_t>(end - first) * bytes_of(samples);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(static_cast<std::byte*>(pixels) + i * kept,
                all.get() + i * pixel + static_cast<std::size_t>(first) * bytes_of(samples), kept);
  }
}

std::string read(OpenFile& file, int first, int end, Samples samples, void* pixels) {
  try {
    read_samples(file, first, end, samples, pixels);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

std::string format_of(const std::string& path) {
  std::string extension = path.substr(std::min(path.rfind('.'), path.size()));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (extension == ".exr") return "openexr";
  if (extension == ".hdr") return "hdr";
  if (extension == ".png") return "png";
  return extension == ".jpg" || extension == ".jpeg" ? "jpeg" : "";
}

std::string write(const std::string& path, const Picture& picture, const WriteBytes& write_bytes) {
  const std::string format = format_of(path);
  ByteSink file(write_bytes);
  try {
    if (format == "openexr") write_exr(picture, file);
    if (format == "hdr") write_hdr(picture, file);
    if (format == "png") write_png(picture, file);
    if (format == "jpeg") write_jpeg(picture, file);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  }
  return format.empty() ? "no image format has such a name" : "";
}

constexpr ImageLibrary kLibrary = {
    .keep_to_one_thread = keep_to_one_thread,
    .reads_from_memory = reads_from_memory,
    .open_memory = open_memory,
    .open_path = open_path,
    .select_picture = select_picture,
    .header = header,
    .read = read,
    .format_of = format_of,
    .write = write,
};

}  // namespace
}  // namespace cumulus::images

extern "C" const cumulus::images::ImageLibrary* cumulus_image_library_2();
extern "C" const cumulus::images::ImageLibrary* cumulus_image_library_2() {
  return &cumulus::images::kLibrary;
}
