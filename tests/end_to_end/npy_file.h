#pragma once

#include <string>

namespace cumulus::testing {

/// The bytes of a .npy file: `descr` as NumPy has it, "<f4", and the inside of the shape's brackets, "3, 4".
inline std::string npy_file(const std::string& descr, const std::string& shape, const std::string& elements) {
  std::string dictionary = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  dictionary.append(117 - dictionary.size(), ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dictionary + '\n' + elements;
}

}  // namespace cumulus::testing
