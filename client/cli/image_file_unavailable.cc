#include <absl/strings/str_cat.h>

#include "cli/image_file.h"

namespace cumulus::cli {
namespace {

absl::Status built_without(const std::string& path) {
  return absl::UnimplementedError(
      absl::StrCat("this cumulus cannot open ", path,
                   ": it was built without OpenImageIO; build it with CUMULUS_OPENIMAGEIO=ON"));
}

}  // namespace

absl::StatusOr<Array> read_image(const std::string& path, HalfFloats) { return built_without(path); }

absl::StatusOr<Array> read_image_as_stored(const std::string& path) { return built_without(path); }

absl::Status write_image(const std::string& path, const ArrayView&, Colours, std::optional<ElementType>) {
  return built_without(path);
}

std::optional<ElementType> integer_samples(const std::string&) { return std::nullopt; }

absl::Status check_image_name(const std::string& path) { return built_without(path); }

bool holds_floats(const std::string&) { return true; }

}  // namespace cumulus::cli
