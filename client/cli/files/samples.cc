#include "cli/files/samples.h"

#include <array>
#include <utility>

namespace cumulus::cli {
namespace {

constexpr std::array<std::pair<ElementType, images::Samples>, 9> kSamples = {{
    {ElementType::kUint8, images::Samples::kUint8},
    {ElementType::kUint16, images::Samples::kUint16},
    {ElementType::kUint32, images::Samples::kUint32},
    {ElementType::kUint64, images::Samples::kUint64},
    {ElementType::kInt32, images::Samples::kInt32},
    {ElementType::kInt64, images::Samples::kInt64},
    {ElementType::kFloat16, images::Samples::kFloat16},
    {ElementType::kFloat32, images::Samples::kFloat32},
    {ElementType::kFloat64, images::Samples::kFloat64},
}};

}  // namespace

images::Samples samples_of(ElementType type) {
  for (const auto& [element, samples] : kSamples) {
    if (element == type) return samples;
  }
  return images::Samples::kOther;
}

std::optional<ElementType> element_type_of(images::Samples wanted) {
  for (const auto& [element, samples] : kSamples) {
    if (samples == wanted) return element;
  }
  return std::nullopt;
}

}  // namespace cumulus::cli
