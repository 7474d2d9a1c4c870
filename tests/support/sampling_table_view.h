#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "cumulus/sampling.h"

namespace cumulus::testing {

/// A view of a table in host memory, whose header must be valid.
inline sampling::TableView view_of(const std::vector<unsigned char>& table) {
  sampling::TableView view;
  EXPECT_EQ(sampling::parse_header(table.data(), table.size(), table.size(), view.header),
            sampling::TableError::kNone);
  view.data = table.data();
  return view;
}

}  // namespace cumulus::testing
