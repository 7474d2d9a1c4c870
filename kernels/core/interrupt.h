#pragma once

#include <exception>

namespace cumulus {

/// Thrown between kernels when the caller no longer wants the result.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "the call was interrupted"; }
};

/// Asked between kernels. The server's answers with the call's deadline and cancellation.
class Interrupt {
 public:
  virtual ~Interrupt() = default;
  virtual bool requested() const = 0;
};

}  // namespace cumulus
