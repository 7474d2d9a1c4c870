#pragma once

#include <vector>

#include "cli/files/picture.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

// What commands that read and write pictures say of them alike.

namespace cumulus::cli {

/// --subimage and --channels.
std::vector<CLI::Option*> add_picture_choice(CLI::App& command, PictureChoice& choice);

/// --non-finite.
void add_non_finite_policy(CLI::App& command, NonFinite& policy);

/// -d and --compression.
void add_picture_output(CLI::App& command, PictureOptions& options);

}  // namespace cumulus::cli
