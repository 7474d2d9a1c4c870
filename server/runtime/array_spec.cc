#include "server/runtime/array_spec.h"

#include <absl/strings/str_join.h>

#include <algorithm>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

/// a * b; kMaxArrayBytes where it is larger than that.
std::size_t bounded_product(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return kMaxArrayBytes;
  return std::min(product, kMaxArrayBytes);
}

absl::Status check_extents(const v1::ArraySpec& spec, std::string_view field) {
  if (static_cast<std::size_t>(spec.shape_size()) > kMaxExtents) {
    return bad_field(concat(field, ".shape"),
                     concat("has ", spec.shape_size(), " extents; at most ", kMaxExtents, " are allowed"));
  }
  // Extents of 0 count as 1 here, so that the strides of an empty array are in range too.
  std::size_t bytes = element_size(spec.element_type());
  for (int i = 0; i < spec.shape_size(); ++i) {
    if (spec.shape(i) < 0) {
      return bad_field(concat(field, ".shape[", i, "]"),
                       concat("is ", spec.shape(i), "; extents are at least 0"));
    }
    bytes = bounded_product(bytes, static_cast<std::size_t>(std::max<std::int64_t>(spec.shape(i), 1)));
  }
  if (bytes >= kMaxArrayBytes) {
    return bad_field(concat(field, ".shape"),
                     concat("[", absl::StrJoin(spec.shape(), ", "), "] is more than can be addressed; ",
                            "Capabilities.max_buffer_bytes is what this server takes"));
  }
  return absl::OkStatus();
}

}  // namespace

std::size_t element_size(v1::ElementType type) {
  switch (type) {
    case v1::UINT8:
      return 1;
    case v1::UINT16:
    case v1::FLOAT16:
      return 2;
    case v1::UINT32:
    case v1::INT32:
    case v1::FLOAT32:
      return 4;
    case v1::UINT64:
    case v1::INT64:
    case v1::FLOAT64:
      return 8;
    default:
      return 0;
  }
}

std::size_t ArrayShape::elements() const {
  std::size_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent == 0) return 0;
    product = bounded_product(product, static_cast<std::size_t>(extent));
  }
  return product;
}

std::size_t ArrayShape::bytes() const { return bounded_product(elements(), element_size(type)); }

std::string ArrayShape::text() const {
  return concat(v1::ElementType_Name(type), " [", absl::StrJoin(extents, ", "), "]");
}

absl::StatusOr<ArrayShape> parse_array_spec(const v1::ArraySpec& spec, std::string_view field) {
  if (element_size(spec.element_type()) == 0) {
    return bad_field(concat(field, ".element_type"),
                     concat("is ", static_cast<int>(spec.element_type()),
                            "; set one of UINT8, UINT16, UINT32, UINT64, INT32, INT64, FLOAT16, FLOAT32, "
                            "FLOAT64"));
  }
  const absl::Status extents = check_extents(spec, field);
  if (!extents.ok()) return extents;
  return ArrayShape{spec.element_type(), {spec.shape().begin(), spec.shape().end()}};
}

void write_array_spec(const ArrayShape& shape, v1::ArraySpec& spec) {
  spec.set_element_type(shape.type);
  spec.mutable_shape()->Assign(shape.extents.begin(), shape.extents.end());
}

}  // namespace cumulus::server
