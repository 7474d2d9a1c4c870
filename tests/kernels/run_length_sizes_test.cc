#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/encoded_run_lengths.h"

// Arrays of the lengths between which GPUs change their way to encode.

namespace cumulus {
namespace {

template <class Backend>
class RunLengthSizes : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(RunLengthSizes, testing::Backends, testing::BackendNames);

TYPED_TEST(RunLengthSizes, EncodesTilesInEveryFormWithCutsAndWithoutRoom) {
  testing::for_every_array({140001}, [&](const testing::RunArray& array) {
    for (const RunLengthFormat& format : testing::kRunFormats) {
      auto params = testing::params_for(array, format);
      testing::encode_right(this->backend(), array, params);
      params.cut_elements = 33;
      params.max_runs = 1077;
      testing::encode_right(this->backend(), array, params);
    }
  });
}

/// On a GPU, of a block, of clusters, and where each ends.
TYPED_TEST(RunLengthSizes, EncodesSmallArraysOfEachSize) {
  for (const testing::RunPattern pattern : testing::kRunPatterns) {
    for (const std::int64_t length :
         {31, 1024, 1025, 2048, 2049, 8192, 8193, 16385, 32769, 65536, 65537, 131072, 131073}) {
      SCOPED_TRACE(std::string(testing::name_of(pattern)) + ", " + std::to_string(length));
      const testing::RunArray array = testing::make_run_array(pattern, 4, length);
      auto params = testing::params_for(array, testing::kRunFormats[0]);
      testing::encode_right(this->backend(), array, params);
      params.cut_elements = 1000;
      params.max_runs = 1025;
      testing::encode_right(this->backend(), array, params);
    }
  }
}

}  // namespace
}  // namespace cumulus
