#include "cli/files/npy.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <array>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "cli/files/extension.h"
#include "cli/files/input.h"
#include "cli/files/output.h"

namespace cumulus::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// A dictionary for numbers is far shorter; what says more is damaged or hostile.
constexpr std::size_t kMaxDictionaryBytes = 1 << 16;

absl::Status no_array(const std::string& path, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", path, ": ", std::string(what),
                   "; a .npy file of little-endian numbers in row-major order is right"));
}

/// The dictionary after magic, version and length; empty where the file does not begin as one.
std::string read_dictionary(std::istream& file) {
  std::array<char, 8> start{};
  if (!file.read(start.data(), start.size()) || std::string_view(start.data(), kMagic.size()) != kMagic)
    return "";
  std::array<unsigned char, 4> length{};
  const int length_bytes = start[6] == 1 ? 2 : 4;
  if (!file.read(reinterpret_cast<char*>(length.data()), length_bytes)) return "";
  const std::size_t size = length[0] + (std::size_t{length[1]} << 8) + (std::size_t{length[2]} << 16) +
                           (std::size_t{length[3]} << 24);
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

}  // namespace

bool is_npy(const std::string& path) { return extension_of(path) == ".npy"; }

absl::StatusOr<Array> read_npy(const std::string& path) {
  if (absl::Status named = refuse_folder(path); !named.ok()) return named;
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path, "; give a .npy file that exists"));
  return read_npy(file, path);
}

absl::StatusOr<Array> read_npy(std::istream& file, const std::string& path) {
  const std::string dictionary = read_dictionary(file);
  if (dictionary.empty()) return no_array(path, "it does not begin as a .npy file");
  const auto type = type_of(value_of(dictionary, "descr", ","));
  if (value_of(dictionary, "descr", ",").rfind('[', 0) == 0)
    return no_array(path, "its elements are records; save the fields of them that are meant as an array");
  if (!type) return no_array(path, absl::StrCat("its elements are ", value_of(dictionary, "descr", ",")));
  if (value_of(dictionary, "fortran_order", ",}") != "False")
    return no_array(path, "it is in column-major order");
  const auto shape = shape_of(value_of(dictionary, "shape", ")"));
  if (!shape) return no_array(path, "its shape is no list of numbers");
  absl::StatusOr<Array> array = Array::allocate(*type, *shape);
  if (!array.ok()) return no_array(path, std::string(array.status().message()));
  const auto bytes = array->mutable_bytes();
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (static_cast<std::size_t>(file.gcount()) != bytes.size())
    return no_array(path, "it ends before its array does");
  return array;
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

absl::Status write_npy(const std::string& path, const ArrayView& array) {
  OutputFile file(path);
  const std::string header = npy_header(npy_descr(array.type()), array.shape());
  file.expect(static_cast<std::int64_t>(header.size() + array.bytes().size()));
  file.write(std::as_bytes(std::span(header)));
  file.write(array.bytes());
  return file.commit();
}

}  // namespace cumulus::cli
