#pragma once

#include <cstdint>
#include <optional>

#include "kernels/core/div.h"
#include "kernels/core/host_device.h"
#include "kernels/recursive_filter/fir/gaussian.h"

// The form of a stage of small steps (FirStage), of which the blocks of a GPU have parts.

namespace cumulus::recursive_filter {

/// Results of a thread, neighbours along the axis that it filters; taps that it adds to each of them at a
/// time.
inline constexpr int kFirRun = 8;
inline constexpr int kFirTaps = 4;
/// Weights of an axis, with zeros after those of each phase: at most 83 taps, or four times 12.
inline constexpr int kFirWeights = 96;

/// The form of a pass that a block needs. Results come in groups of `phases`; a group's taps begin at a
/// multiple of `advance`; taps come in `chunks` of kFirTaps times `advance`.
struct FirForm {
  int phases = 1, advance = 1, chunks = 1;
  std::int64_t groups = 1;

  CUMULUS_HOST_DEVICE int tap_groups() const { return kFirTaps * chunks; }
};

/// Of an absent pass: an axis of `length` places stays as it is.
inline FirForm form_of(const std::optional<FirPass>& pass, std::int64_t length) {
  FirForm form;
  form.groups = length;
  if (!pass.has_value()) return form;
  form.phases = static_cast<int>(pass->phases);
  form.advance = static_cast<int>(pass->advance);
  form.chunks = static_cast<int>(divide_up(pass->taps, kFirTaps * pass->advance));
  form.groups = divide_up(pass->out_length, pass->phases);
  return form;
}

}  // namespace cumulus::recursive_filter
