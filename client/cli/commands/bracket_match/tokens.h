#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cumulus::cli {

/// A document as tokens: what opens, what closes, and what stands alone.
struct NestingTokens {
  std::vector<std::int32_t> kinds;    // k > 0 opens, -k closes kind k, 0 stands alone
  std::vector<std::int64_t> offsets;  // of the token's first byte in the document
  std::vector<std::int32_t> names;    // of the token, in `vocabulary`; kind k has the name k - 1
  std::vector<std::string> vocabulary;

  const std::string& name(std::size_t token) const {
    return vocabulary[static_cast<std::size_t>(names[token])];
  }
};

/// "LINE:COLUMN" of a byte, both counted from 1.
std::string line_and_column(std::string_view document, std::int64_t offset);

/// The tags of an XML document (or SVG); an empty-element tag stands alone. Comments, CDATA sections,
/// processing instructions, the document type and quoted attribute values hold no tags. Text is no token.
/// INVALID_ARGUMENT, with line and column, where one of these does not end or a tag has no name.
absl::StatusOr<NestingTokens> tokenize_xml(std::string_view document);

/// The objects and arrays of a JSON document; brackets in strings are none. Values are no tokens.
/// INVALID_ARGUMENT, with line and column, where a string does not end.
absl::StatusOr<NestingTokens> tokenize_json(std::string_view document);

}  // namespace cumulus::cli
