// Stands for pbrt-v4's header of this name.
#pragma once

#include <stdexcept>
#include <string>

namespace pbrt {

/// pbrt prints the message and ends the program.
[[noreturn]] inline void ErrorExit(const char* format, const std::string& name) {
  std::string message = format;
  throw std::runtime_error(message.replace(message.find("%s"), 2, name));
}

}  // namespace pbrt
