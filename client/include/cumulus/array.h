#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Arrays in host memory, as they go to a Cumulus server and come back: dense, row-major,
/// little-endian. Images are [height, width, channels] or [height, width], point sets
/// [count, dimensions].
namespace cumulus {

enum class ElementType { kUint8, kUint16, kUint32, kUint64, kInt32, kInt64, kFloat16, kFloat32, kFloat64 };

/// Bytes of one element.
std::size_t element_bytes(ElementType type);

/// "uint8", "float32", ... as NumPy spells them.
std::string_view element_name(ElementType type);

/// Extents, outermost first.
using Shape = std::vector<std::int64_t>;

/// The product of the extents; INVALID_ARGUMENT where one is negative or the product overflows.
absl::StatusOr<std::int64_t> element_count(const Shape& shape);

/// The ElementType of a C++ type. float16 has no C++ type here: use bytes.
template <class T>
constexpr ElementType element_type_of() {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return ElementType::kUint8;
  } else if constexpr (std::is_same_v<T, std::uint16_t>) {
    return ElementType::kUint16;
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    return ElementType::kUint32;
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return ElementType::kUint64;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return ElementType::kInt32;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return ElementType::kInt64;
  } else if constexpr (std::is_same_v<T, float>) {
    return ElementType::kFloat32;
  } else {
    static_assert(std::is_same_v<T, double>, "Cumulus arrays hold 8- to 64-bit integers, float and double");
    return ElementType::kFloat64;
  }
}

/// Somebody else's memory seen as an array. The memory must outlive the view. A shape that does not
/// fit the memory's size is reported by the call that takes the view.
class ArrayView {
 public:
  template <class T>
  ArrayView(std::span<const T> values, Shape shape)
      : ArrayView(element_type_of<T>(), std::as_bytes(values), std::move(shape)) {}
  template <class T>
  ArrayView(const std::vector<T>& values, Shape shape)
      : ArrayView(std::span<const T>(values), std::move(shape)) {}
  /// A list: shape [size].
  template <class T>
  explicit ArrayView(const std::vector<T>& values)
      : ArrayView(values, {static_cast<std::int64_t>(values.size())}) {}
  ArrayView(ElementType type, std::span<const std::byte> bytes, Shape shape)
      : type_(type), shape_(std::move(shape)), bytes_(bytes) {}

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  ElementType type_;
  Shape shape_;
  std::span<const std::byte> bytes_;
};

/// An array that owns its memory (aligned for every element type). Movable.
class Array {
 public:
  /// No elements: uint8, shape [0].
  Array() = default;
  /// Uninitialised elements. INVALID_ARGUMENT for an impossible shape, RESOURCE_EXHAUSTED where this
  /// machine has no memory for it.
  static absl::StatusOr<Array> allocate(ElementType type, Shape shape);
  /// Takes elements that lie in somebody else's memory, aligned for their type, until `release` is called at
  /// the array's end, or at once where the bytes do not fit the shape: INVALID_ARGUMENT.
  static absl::StatusOr<Array> adopt(ElementType type, Shape shape, std::span<std::byte> bytes,
                                     std::function<void()> release);

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }
  std::span<std::byte> mutable_bytes() { return {bytes_.get(), size_}; }

  /// The elements, in row-major order; valid as long as the array. INVALID_ARGUMENT where T is not
  /// the array's element type.
  template <class T>
  absl::StatusOr<std::span<const T>> values() const {
    if (absl::Status fits = check_type(element_type_of<T>()); !fits.ok()) return fits;
    return std::span<const T>(reinterpret_cast<const T*>(bytes_.get()), size_ / sizeof(T));
  }

  ArrayView view() const { return {type_, bytes(), shape_}; }

 private:
  struct Release {
    std::function<void()> adopted;  // of memory that is not our own
    void operator()(std::byte* bytes) const;
  };
  absl::Status check_type(ElementType wanted) const;

  ElementType type_ = ElementType::kUint8;
  Shape shape_ = {0};
  std::size_t size_ = 0;
  std::unique_ptr<std::byte[], Release> bytes_;
};

}  // namespace cumulus
