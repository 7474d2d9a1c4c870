#include "cli/npy_file.h"

#include <absl/strings/str_cat.h>

#include <span>

#include "cli/output_file.h"

namespace cumulus::cli {

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
  file.write(std::as_bytes(std::span(header)));
  file.write(array.bytes());
  return file.commit();
}

}  // namespace cumulus::cli
