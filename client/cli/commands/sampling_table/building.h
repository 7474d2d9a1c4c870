#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "cli/commands/sampling_table/input.h"
#include "cli/commands/sampling_table/table_export.h"

namespace cumulus::cli {

/// What sampling-table is asked for.
struct TableOptions {
  std::vector<std::string> inputs;  // images, of several a layer each; or one table
  std::string output;
  TableFormat format = TableFormat::kCst;
  MapTableOptions table;
};

absl::Status run_sampling_table(Job& job, const TableOptions& options);

}  // namespace cumulus::cli
