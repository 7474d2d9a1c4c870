#pragma once

#include <optional>

#include "cumulus/array.h"
#include "images/image_library.h"

namespace cumulus::cli {

/// The image modules' word for elements of that type.
images::Samples samples_of(ElementType type);
/// The element type of a file's samples; nothing for those that arrays do not have.
std::optional<ElementType> element_type_of(images::Samples samples);

}  // namespace cumulus::cli
