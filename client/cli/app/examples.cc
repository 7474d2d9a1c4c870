#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>

#include "cli/app/help.h"

namespace cumulus::cli {

const std::vector<Example>& examples() {
  static const std::vector<Example> kAll = {
      {"sampling-table", "sampling-table sunrise.exr -o sunrise.cst", "of an environment map"},
      {"sampling-table", "sampling-table frames/*.exr -o video.cst", "of a video's frames, a layer each"},
      {"sampling-table", "sampling-table sunrise.cst -o sunrise.npz --export pbrt", "for pbrt"},
      {"draw-samples", "draw-samples sunrise.exr -n 4096 -o samples.npy --preview samples.png",
       "and look at them"},
      {"draw-samples", "draw-samples video.cst -n 1024 --layer 12 -o samples.npy", "of a frame of a video"},
      {"evaluate-density", "evaluate-density sunrise.cst directions.npy -o pdf.npy",
       "for a renderer's weights"},
      {"video-tables", "video-tables frames/*.exr -o tables", "a table for each frame"},
      {"summed-area-table", "summed-area-table photo.png -o sums.npy", "of 8-bit pixels, exact"},
      {"box-filter", "box-filter sunrise.exr -o smooth.exr --radius 8 --boundary repeat,clamp",
       "a lat-long map"},
      {"blur", "blur photo.exr -o soft.exr --sigma 8", ""},
      {"blur", "blur maps/*.exr -o soft/{stem}.exr --sigma 8", "each of many"},
      {"bspline-prefilter", "bspline-prefilter height.exr -o coefficients.exr", "for cubic interpolation"},
      {"filter", "filter signal.npy -o smooth.npy --feedback 0.5", "one pole in both directions"},
      {"run-length encode", "run-length encode mask.png -o mask.rle", ""},
      {"run-length decode", "run-length decode mask.rle -o mask.png", ""},
      {"run-length info", "run-length info mask.rle", ""},
      {"run-length coco-encode", "run-length coco-encode masks/*.png -o masks.json", "of pictures"},
      {"run-length coco-encode", "run-length coco-encode instances.json -o masks.json",
       "of a data set's polygons"},
      {"run-length coco-decode", "run-length coco-decode masks.json -o masks", "a PNG each"},
      {"kd-tree build", "kd-tree build bunny.ply -o bunny.npz", ""},
      {"kd-tree query", "kd-tree query bunny.npz queries.npy -k 8 -o nearest.npz",
       "the 8 nearest points of each"},
      {"kd-tree query", "kd-tree query bunny.npz queries.npy --radius 0.1 -o counts.npz",
       "how many are near"},
      {"kd-tree info", "kd-tree info bunny.npz", ""},
      {"match-brackets", "match-brackets scene.xml --syntax xml -o structure.npz", ""},
      {"clip-drawing", "clip-drawing drawing.svg --preview clips.png", ""},
      {"batch", "batch jobs.txt", "what each line of the file says"},
      {"batch", "batch - --json-lines", "lines from another program, an answer as each ends"},
      {"bench", "bench --server gpu-box:50651", "a server and the way to it"},
      {"health", "health --server gpu-box:50651 --wait-for-server 60", "until it serves"},
      {"capabilities", "capabilities --json", "for a program"},
  };
  return kAll;
}

void add_examples(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::string text;
    for (const Example& example : examples()) {
      if (full_name(*command) != example.command) continue;
      absl::StrAppend(&text, text.empty() ? "Examples:" : "", "\n  cumulus ", example.line);
      if (*example.purpose != '\0') absl::StrAppend(&text, "\n      ", example.purpose);
    }
    command->footer(text);
    add_examples(*command);
  }
}

}  // namespace cumulus::cli
