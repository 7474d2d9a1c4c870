#pragma once

#include "cli/commands.h"

namespace cumulus::cli {

/// `clip-drawing`: what an SVG drawing's clips leave of its shapes.
void add_clip_drawing_command(CommandLine& line);

}  // namespace cumulus::cli
