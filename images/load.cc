#include "images/load.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>

namespace cumulus::images {
namespace {

namespace fs = std::filesystem;

/// A module's file is relative to the folder that bin/ lies in, in the build tree and where it is installed.
struct Module {
  const char* file;
  const char* what_to_install;
  std::mutex mutex = {};
  const ImageLibrary* library = nullptr;
};

Module& own_formats() {
  static Module module{CUMULUS_IMAGE_MODULE, "all of this Cumulus"};
  return module;
}
Module& other_formats() {
  static Module module{CUMULUS_OTHER_IMAGE_MODULE, "OpenImageIO and all of this Cumulus"};
  return module;
}

std::string path_of(const Module& module) {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() / module.file;
}

absl::Status cannot_load(const Module& module, absl::string_view why) {
  const std::string path = path_of(module);
  return absl::UnimplementedError(absl::StrCat("it cannot load ", path, " (",
                                               absl::StripPrefix(why, path + ": "), "); install ",
                                               module.what_to_install));
}

absl::StatusOr<const ImageLibrary*> load_now(const Module& module) {
  // Now rather than lazily: a library that does not fit is an error here, and not the process's end later.
  void* const handle = dlopen(path_of(module).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return cannot_load(module, dlerror());
  const auto entry = reinterpret_cast<const ImageLibrary* (*)()>(dlsym(handle, kImageLibrarySymbol));
  if (entry == nullptr) return cannot_load(module, "it is of another version");
  return entry();
}

absl::StatusOr<const ImageLibrary*> load(Module& module) {
  const std::lock_guard<std::mutex> lock(module.mutex);
  if (module.library != nullptr) return module.library;
  const absl::StatusOr<const ImageLibrary*> loaded = load_now(module);
  if (loaded.ok()) module.library = *loaded;
  return loaded;
}

bool is_own(std::string_view format) {
  return format == "openexr" || format == "hdr" || format == "png" || format == "jpeg";
}

constexpr std::array<std::string_view, 5> kOwnExtensions = {".exr", ".hdr", ".png", ".jpg", ".jpeg"};

}  // namespace

absl::StatusOr<const ImageLibrary*> library_that_reads(const std::string& format) {
  return load(is_own(format) ? own_formats() : other_formats());
}

absl::StatusOr<const ImageLibrary*> library_that_writes(const std::string& path) {
  const std::string extension = absl::AsciiStrToLower(fs::path(path).extension().string());
  const bool own = std::find(kOwnExtensions.begin(), kOwnExtensions.end(), extension) != kOwnExtensions.end();
  return load(own ? own_formats() : other_formats());
}

bool image_library_is_installed() { return access(path_of(own_formats()).c_str(), R_OK) == 0; }

}  // namespace cumulus::images
