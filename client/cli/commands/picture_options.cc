#include "cli/commands/picture_options.h"

#include <CLI/App.hpp>
#include <limits>
#include <map>
#include <string>

#include "cli/app/checks.h"

namespace cumulus::cli {
namespace {

const std::map<std::string, NonFinite> kPolicies = {
    {"refuse", NonFinite::kRefuse}, {"clamp", NonFinite::kClamp}, {"keep", NonFinite::kKeep}};

// OpenImageIO's names are known, too.
const std::map<std::string, ElementType> kTypes = {
    {"uint8", ElementType::kUint8},     {"uint16", ElementType::kUint16},
    {"float16", ElementType::kFloat16}, {"float32", ElementType::kFloat32},
    {"float64", ElementType::kFloat64}, {"half", ElementType::kFloat16},
    {"float", ElementType::kFloat32},   {"double", ElementType::kFloat64}};

}  // namespace

std::vector<CLI::Option*> add_picture_choice(CLI::App& command, PictureChoice& choice) {
  CLI::Option* subimage =
      command
          .add_option(
              "--subimage", choice.subimage,
              "Of a file with several pictures: the number of the one to take, from 0 on, or the name of an "
              "EXR part (default: the first)")
          ->type_name("N|NAME");
  CLI::Option& channels =
      add_list(command, "--channels", choice.channels, std::numeric_limits<std::size_t>::max(),
               CLI::Validator(), "Channels to take, by name, or layers: R,G,B or diffuse,N.X");
  channels.type_name("NAME[,NAME...]");
  return {subimage, &channels};
}

void add_non_finite_policy(CLI::App& command, NonFinite& policy) {
  command
      .add_option("--non-finite", policy,
                  "Of pixels that are NaN or infinite: refuse (default; the first is named), clamp (NaN to "
                  "0, infinity "
                  "to the picture's largest number, at least 65504) or keep")
      ->transform(one_of(kPolicies))
      ->type_name("NAME");
}

void add_picture_output(CLI::App& command, PictureOptions& options) {
  command
      .add_option(
          "-d,--data-type", options.samples,
          "Samples of the image file to write: uint8, uint16, float16 (half), float32 (float) or float64 "
          "(double); otherwise those of the input, where they hold the result")
      ->transform(one_of(kTypes))
      ->type_name("TYPE");
  command
      .add_option(
          "--compression", options.compression,
          "Of the image file to write: of EXR none, rle, zips, zip, piz, pxr24, b44, b44a, dwaa or dwab, "
          "with a "
          "level dwaa:45; of JPEG jpeg:1 to jpeg:100; of PNG png:0 to png:9; otherwise as the input's")
      ->type_name("NAME[:LEVEL]");
}

}  // namespace cumulus::cli
