#pragma once

#include <cstddef>
#include <variant>

#include "kernels/core/device_numbers.h"
#include "kernels/summed_area_table/build_shape.h"
#include "kernels/summed_area_table/look_back/look_back.h"
#include "kernels/summed_area_table/resident/resident.h"
#include "kernels/summed_area_table/strips/strips.h"

namespace cumulus::summed_area_table {

/// How a table is built on a GPU: the method, and all that follows from the job's shape.
using Plan = std::variant<LookBackPlan, ResidentPlan, StripsPlan>;

/// The only place that chooses. Every shape has a plan; the device holds all blocks of one whose blocks wait
/// for each other.
Plan choose(const BuildShape& shape, const DeviceNumbers& device);

/// Scratch memory that the plan takes.
inline std::size_t scratch_bytes(const Plan& plan) {
  return std::visit([](const auto& of_method) { return of_method.scratch_bytes(); }, plan);
}

}  // namespace cumulus::summed_area_table
