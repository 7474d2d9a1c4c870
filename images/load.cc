#include "images/load.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>

namespace cumulus::images {
namespace {

namespace fs = std::filesystem;

/// CUMULUS_IMAGE_MODULE is relative to the folder that bin/ lies in, in the build tree and where it is
/// installed.
std::string module_path() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() / CUMULUS_IMAGE_MODULE;
}

absl::Status cannot_load(const std::string& path, absl::string_view why) {
  return absl::UnimplementedError(absl::StrCat("it cannot load ", path, " (",
                                               absl::StripPrefix(why, path + ": "),
                                               "); install OpenImageIO and all of this Cumulus"));
}

absl::StatusOr<const ImageLibrary*> load_now() {
  const std::string path = module_path();
  // Now rather than lazily: a library that does not fit is an error here, and not the process's end later.
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return cannot_load(path, dlerror());
  const auto entry = reinterpret_cast<const ImageLibrary* (*)()>(dlsym(module, kImageLibrarySymbol));
  if (entry == nullptr) return cannot_load(path, "it is of another version");
  return entry();
}

}  // namespace

absl::StatusOr<const ImageLibrary*> load_image_library() {
  static std::mutex mutex;
  static const ImageLibrary* library = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (library != nullptr) return library;
  const absl::StatusOr<const ImageLibrary*> loaded = load_now();
  if (loaded.ok()) library = *loaded;
  return loaded;
}

bool image_library_is_installed() { return access(module_path().c_str(), R_OK) == 0; }

}  // namespace cumulus::images
