#pragma once

#include <absl/status/status.h>

#include <cstdint>

#include "kernels/sampling_table/sampling_table.h"
#include "server/pipeline/operation.h"

// What requests that read a table have in common.

namespace cumulus::server::ops {

/// The header of a table that is an input.
absl::Status read_table_header(const InputArray& table, sampling::TableHeader& header);

absl::Status check_layer(std::uint32_t layer, const sampling::TableHeader& header);

}  // namespace cumulus::server::ops
