#pragma once

#include "cli/app/command_line.h"

namespace cumulus::cli {

/// `clip-drawing`: what an SVG drawing's clips leave of its shapes.
void add_clip_drawing_command(CommandLine& line);

}  // namespace cumulus::cli
