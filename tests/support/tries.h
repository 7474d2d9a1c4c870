#pragma once

#include <functional>

namespace cumulus::testing {

/// True where `holds` is at one of three tries: for what compares times, which a busy machine may upset once
/// and a fault upsets each time.
inline bool once_in_three(const std::function<bool()>& holds) { return holds() || holds() || holds(); }

}  // namespace cumulus::testing
