#pragma once

#include <absl/status/status.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/files/picture.h"
#include "cli/job/job.h"
#include "cumulus/recursive_filter.h"

namespace cumulus::cli {

/// Options that take one value for both axes or X,Y have one or two elements.
struct FilterOptions {
  std::string command;
  std::string input;
  std::string output;
  std::string preview;
  std::vector<ImageBoundary> boundaries = {ImageBoundary::kClamp};
  std::vector<double> sigmas;
  std::string method = "auto";
  std::vector<int> derivatives = {0};
  int degree = 3;
  std::vector<double> feedback;
  std::optional<double> gain;
  std::string algorithm = "auto";
  std::optional<double> max_truncation_error;
  PictureOptions picture;
  bool decode_on_server = false;
};

/// The names of the ways that a GPU can go; fir, which is told and not asked for, goes with its method.
const std::map<std::string, FilterMethod>& filter_algorithms();

/// Whether `options` take a derivative along any axis.
bool derives(const FilterOptions& options);

/// Reads, filters and writes the picture that `options` name.
absl::Status run_filter(Job& job, const FilterOptions& options, const RecursiveFilterOptions& filter);

}  // namespace cumulus::cli
