#include <absl/strings/str_join.h>

#include <cstddef>
#include <span>

#include "cumulus/array.h"
#include "cumulus/cumulus.h"
#include "library/c/handles.h"

namespace cumulus::c {
namespace {

static_assert(static_cast<int>(ElementType::kUint8) == CUMULUS_UINT8 &&
              static_cast<int>(ElementType::kInt64) == CUMULUS_INT64 &&
              static_cast<int>(ElementType::kFloat64) == CUMULUS_FLOAT64);

constexpr std::int32_t kMaxRank = 8;

Outcome upload(const cumulus_connection& connection, const cumulus_array& array, cumulus_buffer** buffer) {
  if (Outcome checked = check_array(array); !checked.ok()) return checked;
  absl::StatusOr<Buffer> uploaded = connection.session.upload(view_of(array));
  if (!uploaded.ok()) return uploaded.status();
  *buffer = new cumulus_buffer{*std::move(uploaded)};
  return absl::OkStatus();
}

Outcome download(const cumulus_connection& connection, const Buffer& buffer,
                 std::span<std::byte> destination) {
  if (destination.size() != static_cast<std::size_t>(buffer.size_bytes())) {
    return refuse("size", absl::StrCat("is ", destination.size(), " bytes, and the buffer has ",
                                       buffer.size_bytes(), "; cumulus_buffer_size says it"));
  }
  return connection.session.download(buffer, destination);
}

}  // namespace

Outcome check_array(const cumulus_array& array) {
  if (array.type < CUMULUS_UINT8 || array.type > CUMULUS_FLOAT64) {
    return refuse("array.type", "is no cumulus_element_type");
  }
  if (array.rank < 1 || array.rank > kMaxRank) {
    return refuse("array.rank", absl::StrCat("is ", array.rank, "; it has to be 1 to ", kMaxRank));
  }
  if (Outcome given = require({{"array.shape", array.shape}}); !given.ok()) return given;
  const Shape shape(array.shape, array.shape + array.rank);
  const absl::StatusOr<std::int64_t> count = element_count(shape);
  if (!count.ok()) return {count.status(), "array.shape"};
  const std::size_t element = element_bytes(static_cast<ElementType>(array.type));
  if (array.size / element != static_cast<std::size_t>(*count) || array.size % element != 0) {
    return refuse("array.size",
                  absl::StrCat("is ", array.size, " bytes, but the shape [", absl::StrJoin(shape, ", "),
                               "] has ", *count, " elements of ", element, " bytes each"));
  }
  return array.size == 0 ? Outcome(absl::OkStatus()) : require({{"array.data", array.data}});
}

}  // namespace cumulus::c

cumulus_code cumulus_upload(cumulus_connection* connection, const cumulus_array* array,
                            cumulus_buffer** buffer, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"connection", connection}, {"array", array}, {"buffer", buffer}});
    if (buffer != nullptr) *buffer = nullptr;
    return given.ok() ? cumulus::c::upload(*connection, *array, buffer) : given;
  });
}

cumulus_code cumulus_download(cumulus_connection* connection, const cumulus_buffer* buffer, void* destination,
                              size_t size, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given =
        cumulus::c::require({{"connection", connection}, {"buffer", buffer}, {"destination", destination}});
    if (!given.ok()) return given;
    return cumulus::c::download(*connection, buffer->buffer, {static_cast<std::byte*>(destination), size});
  });
}

cumulus_element_type cumulus_buffer_type(const cumulus_buffer* buffer) {
  return static_cast<cumulus_element_type>(buffer->buffer.type());
}

int32_t cumulus_buffer_rank(const cumulus_buffer* buffer) {
  return static_cast<int32_t>(buffer->buffer.shape().size());
}

const int64_t* cumulus_buffer_shape(const cumulus_buffer* buffer) { return buffer->buffer.shape().data(); }

size_t cumulus_buffer_size(const cumulus_buffer* buffer) {
  return static_cast<size_t>(buffer->buffer.size_bytes());
}

void cumulus_buffer_release(cumulus_buffer* buffer) { delete buffer; }
