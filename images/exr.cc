#include "images/exr.h"

#include <ImfThreading.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "images/samples.h"

namespace cumulus::images {
namespace {

constexpr std::array<std::pair<const char*, Imf::Compression>, 10> kCompressions = {{
    {"none", Imf::NO_COMPRESSION},
    {"rle", Imf::RLE_COMPRESSION},
    {"zips", Imf::ZIPS_COMPRESSION},
    {"zip", Imf::ZIP_COMPRESSION},
    {"piz", Imf::PIZ_COMPRESSION},
    {"pxr24", Imf::PXR24_COMPRESSION},
    {"b44", Imf::B44_COMPRESSION},
    {"b44a", Imf::B44A_COMPRESSION},
    {"dwaa", Imf::DWAA_COMPRESSION},
    {"dwab", Imf::DWAB_COMPRESSION},
}};

constexpr std::array<std::string_view, 8> kFields = {"channels",      "compression",    "dataWindow",
                                                     "displayWindow", "chromaticities", "chunkCount",
                                                     "type",          "version"};

/// A layer, the place of its channel, and its name.
std::tuple<std::string, int, std::string> place_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const std::string layer = dot == std::string::npos ? "" : name.substr(0, dot);
  std::string own = dot == std::string::npos ? name : name.substr(dot + 1);
  std::transform(own.begin(), own.end(), own.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  constexpr std::array<std::pair<std::string_view, int>, 9> kPlaces = {{{"r", 0},
                                                                        {"red", 0},
                                                                        {"g", 1},
                                                                        {"green", 1},
                                                                        {"b", 2},
                                                                        {"blue", 2},
                                                                        {"y", 3},
                                                                        {"a", 4},
                                                                        {"alpha", 4}}};
  const auto* const found =
      std::find_if(kPlaces.begin(), kPlaces.end(), [&](const auto& place) { return place.first == own; });
  return {layer, found == kPlaces.end() ? 5 : found->second, name};
}

}  // namespace

void use_all_threads() {
  static std::once_flag once;
  std::call_once(once, [] { Imf::setGlobalThreadCount(threads() > 1 ? threads() : 0); });
}

std::string compression_name(Imf::Compression compression) {
  for (const auto& [name, known] : kCompressions) {
    if (known == compression) return name;
  }
  return "";
}

Imf::Compression compression_named(const std::string& name) {
  std::string names;
  for (const auto& [known, compression] : kCompressions) {
    if (name == known) return compression;
    names += names.empty() ? known : std::string(", ") + known;
  }
  throw std::invalid_argument("OpenEXR has no compression '" + name + "'; one of " + names + " is right");
}

bool has_a_field(std::string_view name) {
  return std::find(kFields.begin(), kFields.end(), name) != kFields.end();
}

bool comes_before(const std::string& a, const std::string& b) { return place_of(a) < place_of(b); }

}  // namespace cumulus::images
