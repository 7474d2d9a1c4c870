#pragma once

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace cumulus::testing {

/// A file of tests/data. The environment variable CUMULUS_TEST_DATA names another folder, so that the test
/// programs run on a machine that has no checkout.
inline std::filesystem::path test_data(std::string_view name) {
  const char* folder = std::getenv("CUMULUS_TEST_DATA");
  return std::filesystem::path(folder != nullptr ? folder : CUMULUS_TEST_DATA) / name;
}

/// One of the built programs, "cumulus" or "cumulusd". CUMULUS_PROGRAMS names another folder.
inline std::filesystem::path test_program(std::string_view name) {
  const char* folder = std::getenv("CUMULUS_PROGRAMS");
  return std::filesystem::path(folder != nullptr ? folder : CUMULUS_PROGRAMS) / name;
}

}  // namespace cumulus::testing
