#include "cumulus/array.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace cumulus {
namespace {

std::string name_of(ElementType type) { return std::string(element_name(type)); }

/// Null where there is no memory. What is large lies in huge pages where the system has some to give: a fault
/// for each 4 KiB costs more than the rest of a local download.
std::byte* allocate_bytes(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  if (bytes < 2 * kHugePage) return static_cast<std::byte*>(std::malloc(std::max<std::size_t>(bytes, 1)));
  const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = whole < bytes ? nullptr : std::aligned_alloc(kHugePage, whole);
  if (memory != nullptr) madvise(memory, whole, MADV_HUGEPAGE);  // advice: without it all is as before
  return static_cast<std::byte*>(memory);
}

}  // namespace

std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return 1;
    case ElementType::kUint16:
    case ElementType::kFloat16:
      return 2;
    case ElementType::kUint32:
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    case ElementType::kUint64:
    case ElementType::kInt64:
    case ElementType::kFloat64:
      return 8;
  }
  std::abort();
}

std::string_view element_name(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kUint16:
      return "uint16";
    case ElementType::kUint32:
      return "uint32";
    case ElementType::kUint64:
      return "uint64";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
  }
  std::abort();
}

absl::StatusOr<std::int64_t> element_count(const Shape& shape) {
  const auto impossible = [&](const char* why) {
    return absl::InvalidArgumentError(absl::StrCat("shape [", absl::StrJoin(shape, ", "), "]: ", why));
  };
  std::int64_t smallest = 1;
  for (const std::int64_t extent : shape) smallest = std::min(smallest, extent);
  if (smallest < 0) return impossible("every extent has to be at least 0");
  if (smallest == 0) return 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) {
      return impossible("the number of elements has to be below 2^63");
    }
  }
  return count;
}

absl::StatusOr<Array> Array::allocate(ElementType type, Shape shape) {
  const absl::StatusOr<std::int64_t> count = element_count(shape);
  if (!count.ok()) return count.status();
  std::size_t bytes = 0;
  Array array;
  if (!__builtin_mul_overflow(static_cast<std::size_t>(*count), element_bytes(type), &bytes)) {
    array.bytes_.reset(allocate_bytes(bytes));
  }
  if (array.bytes_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("this machine has no memory for a ", name_of(type),
                                                     " array of shape [", absl::StrJoin(shape, ", "), "]"));
  }
  array.type_ = type;
  array.shape_ = std::move(shape);
  array.size_ = bytes;
  return array;
}

absl::StatusOr<Array> Array::adopt(ElementType type, Shape shape, std::span<std::byte> bytes,
                                   std::function<void()> release) {
  Array array;
  array.bytes_ = std::unique_ptr<std::byte[], Release>(bytes.data(), Release{std::move(release)});
  const absl::StatusOr<std::int64_t> count = element_count(shape);
  if (!count.ok()) return count.status();
  if (bytes.size() % element_bytes(type) != 0 ||
      bytes.size() / element_bytes(type) != static_cast<std::size_t>(*count)) {
    return absl::InvalidArgumentError(absl::StrCat(bytes.size(), " bytes are no ", name_of(type),
                                                   " array of shape [", absl::StrJoin(shape, ", "), "]"));
  }
  array.type_ = type;
  array.shape_ = std::move(shape);
  array.size_ = bytes.size();
  return array;
}

void Array::Release::operator()(std::byte* bytes) const {
  if (adopted) {
    adopted();
  } else {
    std::free(bytes);
  }
}

absl::Status Array::check_type(ElementType wanted) const {
  if (wanted == type_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the array holds ", name_of(type_), " elements, and was read as ", name_of(wanted)));
}

}  // namespace cumulus
