#pragma once

#include <string>

namespace cumulus::bench {

/// Writes sampling_paper_fig1.svg, _fig7.svg, _fig8.svg, _fig9.svg and _fig12.svg into `folder` and prints
/// the numbers of the second and the fourth.
/// Throws std::runtime_error where a file cannot be written.
void write_figures(const std::string& folder, int log2_samples);

}  // namespace cumulus::bench
