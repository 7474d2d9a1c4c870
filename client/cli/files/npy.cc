#include "cli/files/npy.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/files/extension.h"
#include "cli/files/input.h"
#include "cli/files/output.h"

namespace cumulus::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// A dictionary for numbers is far shorter; what says more is damaged or hostile.
constexpr std::size_t kMaxDictionaryBytes = 1 << 16;
// Of truth values, each a byte of 0 or 1.
constexpr std::string_view kTruthValues = "'|b1'";

absl::Status no_array(const std::string& path, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", std::string(what),
                                                 "; a .npy file of little-endian numbers is right"));
}

std::uint32_t number_in(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

/// The dictionary after magic, version and length; empty where a file does not begin as one.
std::string_view dictionary_in(std::string_view file) {
  if (file.size() < 12 || file.substr(0, kMagic.size()) != kMagic) return {};
  const std::size_t length_bytes = file[6] == 1 ? 2 : 4;
  const std::size_t size = number_in(file.substr(8, length_bytes));
  if (size > kMaxDictionaryBytes || size > file.size() - 8 - length_bytes) return {};
  return file.substr(8 + length_bytes, size);
}

/// Likewise, of a stream, which then stands behind it.
std::string read_dictionary(std::istream& file) {
  std::string start(12, '\0');
  if (!file.read(start.data(), 10) || start.substr(0, kMagic.size()) != kMagic) return "";
  const std::size_t length_bytes = start[6] == 1 ? 2 : 4;
  if (length_bytes == 4 && !file.read(start.data() + 10, 2)) return "";
  const std::size_t size = number_in(std::string_view(start).substr(8, length_bytes));
  if (size > kMaxDictionaryBytes) return "";
  std::string dictionary(size, '\0');
  return file.read(dictionary.data(), static_cast<std::streamsize>(size)) ? dictionary : "";
}

/// What stands in `dictionary` after 'key': up to the first of `ends`.
std::string value_of(const std::string& dictionary, const std::string& key, const char* ends) {
  const std::size_t found = dictionary.find("'" + key + "':");
  if (found == std::string::npos) return "";
  const std::size_t begin = dictionary.find_first_not_of(' ', found + key.size() + 3);
  if (begin == std::string::npos) return "";
  return dictionary.substr(begin, dictionary.find_first_of(ends, begin) - begin);
}

std::optional<ElementType> type_of(const std::string& descr) {
  for (const ElementType type : {ElementType::kUint8, ElementType::kUint16, ElementType::kUint32,
                                 ElementType::kUint64, ElementType::kInt32, ElementType::kInt64,
                                 ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64}) {
    if (descr == npy_descr(type)) return type;
  }
  if (descr == kTruthValues) return ElementType::kUint8;
  return std::nullopt;
}

/// "(2, 3, " as [2, 3]; nothing where an extent is no number.
std::optional<Shape> shape_of(const std::string& tuple) {
  Shape shape;
  if (tuple.empty() || tuple.front() != '(') return std::nullopt;
  for (const auto& part : absl::StrSplit(tuple.substr(1), ',')) {
    const std::string extent(absl::StripAsciiWhitespace(part));
    if (extent.empty()) continue;
    if (!absl::SimpleAtoi(extent, &shape.emplace_back())) return std::nullopt;
  }
  return shape;
}

struct Layout {
  ElementType type = ElementType::kUint8;
  Shape shape;
  bool column_major = false;
};

/// All but the type: of how the elements lie.
absl::StatusOr<Layout> order_and_shape(const std::string& dictionary, const std::string& path) {
  const std::string column_major = value_of(dictionary, "fortran_order", ",}");
  if (column_major != "False" && column_major != "True")
    return no_array(path, "it does not say whether it is in column-major order");
  auto shape = shape_of(value_of(dictionary, "shape", ")"));
  if (!shape) return no_array(path, "its shape is no list of numbers");
  return Layout{ElementType::kFloat32, *std::move(shape), column_major == "True"};
}

absl::StatusOr<Layout> layout_of(const std::string& dictionary, const std::string& path) {
  if (dictionary.empty()) return no_array(path, "it does not begin as a .npy file");
  const std::string descr = value_of(dictionary, "descr", ",");
  const auto type = type_of(descr);
  if (descr.rfind('[', 0) == 0)
    return no_array(path, "its elements are records; save the fields of them that are meant as an array");
  if (!type) return no_array(path, absl::StrCat("its elements are ", descr));
  absl::StatusOr<Layout> layout = order_and_shape(dictionary, path);
  if (layout.ok()) layout->type = *type;
  return layout;
}

/// The elements of a column-major array in row-major order. NumPy saves what was transposed, such as the
/// points numpy.stack([x, y, z]).T, as it lies in memory.
absl::StatusOr<Array> in_row_major_order(const Layout& layout, std::span<const std::byte> elements) {
  absl::StatusOr<Array> array = Array::allocate(layout.type, layout.shape);
  if (!array.ok()) return array;
  const std::size_t rank = layout.shape.size();
  std::vector<std::size_t> strides(rank, element_bytes(layout.type));  // of each axis in the file, in bytes
  for (std::size_t axis = 1; axis < rank; ++axis)
    strides[axis] = strides[axis - 1] * static_cast<std::size_t>(layout.shape[axis - 1]);
  std::vector<std::int64_t> position(rank, 0);
  const std::span<std::byte> out = array->mutable_bytes();
  std::size_t from = 0;
  for (std::size_t to = 0; to < out.size(); to += element_bytes(layout.type)) {
    std::memcpy(&out[to], &elements[from], element_bytes(layout.type));
    for (std::size_t axis = rank; axis-- > 0;) {
      from += strides[axis];
      if (++position[axis] < layout.shape[axis]) break;
      from -= strides[axis] * static_cast<std::size_t>(layout.shape[axis]);
      position[axis] = 0;
    }
  }
  return array;
}

}  // namespace

bool is_npy(const std::string& path) { return extension_of(path) == ".npy"; }

bool holds_npy(const std::string& path) { return input_extension(path) == ".npy"; }

bool holds_truth_values(const std::string& path) {
  if (!holds_npy(path)) return false;
  const auto file = FileBytes::open(path);
  return file.ok() && value_of(std::string(dictionary_in((*file)->text())), "descr", ",") == kTruthValues;
}

namespace {

/// What lies behind the dictionary of `file`.
absl::StatusOr<Array> elements_of(const std::shared_ptr<FileBytes>& file,
                                  const absl::StatusOr<Layout>& layout, const std::string& path) {
  if (!layout.ok()) return layout.status();
  const std::string_view dictionary = dictionary_in(file->text());
  const auto begin = static_cast<std::size_t>(dictionary.data() + dictionary.size() - file->text().data());
  const absl::StatusOr<std::int64_t> count = element_count(layout->shape);
  if (!count.ok()) return no_array(path, std::string(count.status().message()));
  const std::size_t rest = file->bytes().size() - begin;
  if (static_cast<std::uint64_t>(*count) > rest / element_bytes(layout->type))
    return no_array(path, "it ends before its array does");
  const auto bytes =
      file->bytes().subspan(begin, static_cast<std::size_t>(*count) * element_bytes(layout->type));
  if (layout->column_major) return in_row_major_order(*layout, bytes);
  if (begin % element_bytes(layout->type) == 0)  // in the file's own memory
    return Array::adopt(layout->type, layout->shape, bytes, [kept = file]() mutable { kept.reset(); });
  absl::StatusOr<Array> array = Array::allocate(layout->type, layout->shape);
  if (array.ok()) std::copy(bytes.begin(), bytes.end(), array->mutable_bytes().begin());
  return array;
}

}  // namespace

absl::StatusOr<Array> read_npy(const std::string& path) {
  const auto file = FileBytes::open(path);
  if (!file.ok()) return file.status();
  return elements_of(*file, layout_of(std::string(dictionary_in((*file)->text())), path), path);
}

absl::StatusOr<Array> read_npy_records(const std::string& path, const std::string& descr,
                                       std::int64_t floats) {
  const auto file = FileBytes::open(path);
  if (!file.ok()) return file.status();
  const std::string dictionary(dictionary_in((*file)->text()));
  if (value_of(dictionary, "descr", "]") + "]" != descr)
    return absl::NotFoundError(absl::StrCat(path, " has no such records"));
  absl::StatusOr<Layout> layout = order_and_shape(dictionary, path);
  if (layout.ok() && layout->shape.size() != 1) return no_array(path, "its records are no list");
  if (layout.ok()) *layout = Layout{ElementType::kFloat32, {layout->shape.front(), floats}, false};
  return elements_of(*file, layout, path);
}

absl::StatusOr<Array> read_npy(std::istream& file, const std::string& path) {
  const absl::StatusOr<Layout> layout = layout_of(read_dictionary(file), path);
  if (!layout.ok()) return layout.status();
  absl::StatusOr<Array> array = Array::allocate(layout->type, layout->shape);
  if (!array.ok()) return no_array(path, std::string(array.status().message()));
  const auto bytes = array->mutable_bytes();
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (static_cast<std::size_t>(file.gcount()) != bytes.size())
    return no_array(path, "it ends before its array does");
  return layout->column_major ? in_row_major_order(*layout, bytes) : std::move(array);
}

std::string npy_header(const std::string& descr, const Shape& shape) {
  std::string extents;
  for (const std::int64_t extent : shape) absl::StrAppend(&extents, extent, ", ");
  std::string dictionary =
      absl::StrCat("{'descr': ", descr, ", 'fortran_order': False, 'shape': (", extents, "), }");
  // Magic, version and length take 10 bytes; the data begins at a multiple of 64.
  constexpr std::size_t kPreamble = 10;
  while ((kPreamble + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

std::string npy_descr(ElementType type) {
  const std::string name(element_name(type));
  const char kind = name.front();  // u, i or f, as NumPy has it
  return absl::StrCat("'", kind == 'u' && element_bytes(type) == 1 ? "|" : "<", std::string(1, kind),
                      element_bytes(type), "'");
}

void NpyWriter::begin(const ArrayView& array) {
  // Of less, the thread is dearer than what it saves.
  constexpr std::size_t kWorthAThread = std::size_t{4} << 20;
  const std::string header = npy_header(npy_descr(array.type()), array.shape());
  header_bytes_ = header.size();
  bytes_ = array.bytes();
  file_.expect(static_cast<std::int64_t>(header.size() + bytes_.size()));
  file_.write(std::as_bytes(std::span(header)));
  if (bytes_.size() >= kWorthAThread && file_.takes_any_order())
    writer_ = std::thread([this] { write_until_ended(); });
}

void NpyWriter::take(std::int64_t begin, std::int64_t end) {
  if (!writer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({static_cast<std::size_t>(begin), static_cast<std::size_t>(end)});
    taken_ += static_cast<std::size_t>(end - begin);
  }
  changed_.notify_one();
}

void NpyWriter::write_until_ended() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Part part = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    file_.write_at(static_cast<std::int64_t>(header_bytes_ + part.begin),
                   bytes_.subspan(part.begin, part.end - part.begin));
  }
}

void NpyWriter::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  if (writer_.joinable()) writer_.join();
}

absl::Status NpyWriter::finish(const ArrayView& array) {
  end();
  // Each byte once: nothing is missing, and no transfer that began again has changed what was written.
  if (taken_ != array.bytes().size()) file_.write(array.bytes());
  return file_.commit();
}

absl::Status write_npy(const std::string& path, const ArrayView& array) {
  NpyWriter file(path);
  file.begin(array);
  return file.finish(array);
}

}  // namespace cumulus::cli
