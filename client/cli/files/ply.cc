#include "cli/files/ply.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <istream>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "cli/files/input.h"

namespace cumulus::cli {
namespace {

absl::Status no_ply(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", input_name(path), ": ", what,
                   "; a PLY file that begins with vertices with x, y and z is right"));
}

/// A number's type, as PLY has it.
struct Type {
  char kind;  // 'i', 'u', 'f'
  std::size_t bytes;
};

const std::map<std::string, Type> kTypes = {
    {"char", {'i', 1}},  {"int8", {'i', 1}},    {"uchar", {'u', 1}},  {"uint8", {'u', 1}},
    {"short", {'i', 2}}, {"int16", {'i', 2}},   {"ushort", {'u', 2}}, {"uint16", {'u', 2}},
    {"int", {'i', 4}},   {"int32", {'i', 4}},   {"uint", {'u', 4}},   {"uint32", {'u', 4}},
    {"float", {'f', 4}}, {"float32", {'f', 4}}, {"double", {'f', 8}}, {"float64", {'f', 8}}};

struct Property {
  std::string name;
  Type type;
};

struct Header {
  std::string format;
  std::int64_t vertices = 0;
  std::vector<Property> properties;
  std::array<std::size_t, 3> axes{};  // the properties x, y, z
  bool doubles = false;
};

std::string next_line(std::istream& file) {
  std::string line;
  std::getline(file, line);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

absl::Status find_axes(const std::string& path, Header& header) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::string name(1, static_cast<char>('x' + axis));
    const auto found = std::find_if(header.properties.begin(), header.properties.end(),
                                    [&](const Property& property) { return property.name == name; });
    if (found == header.properties.end()) return no_ply(path, absl::StrCat("its vertices have no ", name));
    header.axes[axis] = static_cast<std::size_t>(found - header.properties.begin());
    header.doubles = header.doubles || found->type.bytes == 8;
  }
  return absl::OkStatus();
}

absl::StatusOr<Header> read_header(std::istream& file, const std::string& path) {
  if (next_line(file) != "ply") return no_ply(path, "it does not begin as a PLY file");
  Header header;
  int elements = 0;
  for (std::string line = next_line(file); line != "end_header"; line = next_line(file)) {
    if (!file) return no_ply(path, "its header does not end");
    std::istringstream words(line);
    std::string keyword;
    std::string first;
    std::string second;
    words >> keyword >> first >> second;
    if (keyword == "format") header.format = first;
    if (keyword == "element") {
      if (++elements > 1) continue;
      std::istringstream count(second);
      if (first != "vertex" || !(count >> header.vertices) || header.vertices < 0) {
        return no_ply(path, absl::StrCat("its first element is '", line, "'"));
      }
    }
    if (keyword != "property" || elements != 1) continue;
    const auto type = kTypes.find(first);
    if (type == kTypes.end()) return no_ply(path, absl::StrCat("it has '", line, "' in its vertices"));
    header.properties.push_back({second, type->second});
  }
  if (absl::Status found = find_axes(path, header); !found.ok()) return found;
  return header;
}

template <class T>
T from_bytes(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

/// Of little-endian bytes.
double value_of(Type type, const char* bytes) {
  if (type.kind == 'f') return type.bytes == 8 ? from_bytes<double>(bytes) : from_bytes<float>(bytes);
  if (type.bytes == 1)
    return type.kind == 'i' ? from_bytes<std::int8_t>(bytes) : from_bytes<std::uint8_t>(bytes);
  if (type.bytes == 2)
    return type.kind == 'i' ? from_bytes<std::int16_t>(bytes) : from_bytes<std::uint16_t>(bytes);
  // Not by ?:, whose two sides become one type: unsigned.
  if (type.kind == 'i') return from_bytes<std::int32_t>(bytes);
  return from_bytes<std::uint32_t>(bytes);
}

/// One vertex's properties as numbers; false where the file ends.
class VertexReader {
 public:
  VertexReader(std::istream& file, const Header& header) : file_(file), header_(header) {
    std::size_t bytes = 0;
    for (const Property& property : header.properties) bytes += property.type.bytes;
    row_.resize(bytes);
  }

  bool read(std::vector<double>& values) {
    if (header_.format == "ascii") {
      std::string word;  // a stream reads no "nan" and no "inf" as a number
      for (double& value : values) {
        char* end = nullptr;
        if (!(file_ >> word)) return false;
        value = std::strtod(word.c_str(), &end);
        if (*end != '\0') return false;
      }
      return true;
    }
    if (!file_.read(row_.data(), static_cast<std::streamsize>(row_.size()))) return false;
    char* bytes = row_.data();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Type type = header_.properties[i].type;
      if (header_.format == "binary_big_endian") std::reverse(bytes, bytes + type.bytes);
      values[i] = value_of(type, bytes);
      bytes += type.bytes;
    }
    return true;
  }

 private:
  std::istream& file_;
  const Header& header_;
  std::vector<char> row_;
};

template <class T>
absl::Status read_vertices(std::istream& file, const Header& header, const std::string& path, Array& points) {
  VertexReader reader(file, header);
  std::vector<double> values(header.properties.size());
  auto* out = reinterpret_cast<T*>(points.mutable_bytes().data());
  for (std::int64_t vertex = 0; vertex < header.vertices; ++vertex) {
    if (!reader.read(values)) {
      return no_ply(path, absl::StrCat("it ends after ", vertex, " of its ", header.vertices, " vertices"));
    }
    for (const std::size_t property : header.axes) *out++ = static_cast<T>(values[property]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Array> read_ply(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<std::istream>> opened = open_stream(path, "a PLY file");
  if (!opened.ok()) return opened.status();
  std::istream& file = **opened;
  const absl::StatusOr<Header> header = read_header(file, path);
  if (!header.ok()) return header.status();
  if (header->format != "ascii" && header->format != "binary_little_endian" &&
      header->format != "binary_big_endian") {
    return no_ply(path, absl::StrCat("its format is '", header->format, "'"));
  }
  absl::StatusOr<Array> points =
      Array::allocate(header->doubles ? ElementType::kFloat64 : ElementType::kFloat32, {header->vertices, 3});
  if (!points.ok()) return no_ply(path, std::string(points.status().message()));
  const absl::Status read = header->doubles ? read_vertices<double>(file, *header, path, *points)
                                            : read_vertices<float>(file, *header, path, *points);
  if (!read.ok()) return read;
  return points;
}

}  // namespace cumulus::cli
