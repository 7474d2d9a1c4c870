#pragma once

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <cstddef>
#include <exception>
#include <initializer_list>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "cumulus/array.h"
#include "cumulus/cumulus.h"
#include "cumulus/session.h"

// NOLINTBEGIN(readability-identifier-naming): C's names

/// What the handles of cumulus.h hold.
struct cumulus_status {
  cumulus_code code = CUMULUS_OK;
  std::string message = {};
  std::string field = {};
  std::string reason = {};
  std::string details = {};
  const char* fixed_message = nullptr;  // instead of `message`, where there may be no memory for one
};
struct cumulus_connection {
  cumulus::Session session;
};
struct cumulus_buffer {
  explicit cumulus_buffer(cumulus::Buffer made) : buffer(std::move(made)) {}
  cumulus::Buffer buffer;
};
struct cumulus_kd_tree {
  cumulus::Buffer points;
  cumulus::Buffer idx_array;
  cumulus::Buffer node_data;
  cumulus::Buffer node_bounds;
};

// NOLINTEND(readability-identifier-naming)

namespace cumulus::c {

/// How a function of cumulus.h ends: a status, and, where this side found the mistake, the argument.
struct Outcome {
  Outcome(absl::Status ended) : status(std::move(ended)) {}  // NOLINT(google-explicit-constructor)
  Outcome(absl::Status ended, std::string argument) : status(std::move(ended)), field(std::move(argument)) {}
  bool ok() const { return status.ok(); }

  absl::Status status;
  std::string field = {};
};

/// INVALID_ARGUMENT of an argument.
inline Outcome refuse(const std::string& argument, const std::string& what) {
  return {absl::InvalidArgumentError(absl::StrCat(argument, " ", what)), argument};
}

struct Argument {
  const char* name;
  const void* value;
};
/// Names the first that is NULL.
inline Outcome require(std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (argument.value == nullptr) return refuse(argument.name, "is NULL; it has to point to something");
  }
  return absl::OkStatus();
}

/// Writes an outcome into `status`, which may be null.
cumulus_code report(cumulus_status* status, const Outcome& outcome);
/// Without taking memory.
cumulus_code report_fixed(cumulus_status* status, cumulus_code code, const char* message) noexcept;

/// Of an array that is to be uploaded: its fields fit one another.
Outcome check_array(const cumulus_array& array);
inline ArrayView view_of(const cumulus_array& array) {
  return {static_cast<ElementType>(array.type),
          std::span(static_cast<const std::byte*>(array.data), array.size),
          Shape(array.shape, array.shape + array.rank)};
}

inline std::string text_of(const char* text) { return text == nullptr ? std::string() : std::string(text); }

/// Runs a function's body, which answers an Outcome; exceptions end here.
template <class Body>
cumulus_code guarded(cumulus_status* status, const Body& body) noexcept {
  try {
    return report(status, body());
  } catch (const std::bad_alloc&) {
    return report_fixed(status, CUMULUS_RESOURCE_EXHAUSTED, "this program has no memory left for the call");
  } catch (...) {
    return report_fixed(status, CUMULUS_INTERNAL,
                        "the client library failed: an exception that it does not know");
  }
}

}  // namespace cumulus::c
