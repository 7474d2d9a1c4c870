#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/support/executors.h"

namespace cumulus::testing {

struct BuiltTable {
  std::vector<unsigned char> table;
  SamplingTableReport report;
};

/// Builds the table of `map`, whose rows are those of all layers, in fresh, poisoned memory; checks that
/// exactly the stated scratch was taken.
template <class Backend, class T>
BuiltTable build_table(Backend& backend, const TestMap<T>& map, SamplingTableParams params) {
  params.height = map.height / params.layers;
  params.width = map.width;
  auto& executor = backend.executor();
  BackendArray<Backend, T> elements(backend, map.elements);
  BackendArray<Backend, unsigned char> table(backend, sampling_table_bytes(params));
  const ImageView<const T, Backend::kSpace> weights(elements.const_span().data(), map.height, map.width,
                                                    map.channels, map.row_stride);
  executor.reserve_scratch(sampling_table_scratch_bytes<Backend::kSpace>(params));
  BuiltTable built;
  build_sampling_table(executor, weights, params,
                       {reinterpret_cast<std::byte*>(table.span().data()), table.span().size()},
                       &built.report);
  EXPECT_EQ(executor.scratch_arena().used_bytes(), sampling_table_scratch_bytes<Backend::kSpace>(params));
  executor.synchronize();
  built.table = table.to_host();
  return built;
}

}  // namespace cumulus::testing
