#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "cli/commands/bracket_match/svg_geometry.h"

namespace cumulus::cli {

/// The attributes of one tag.
class SvgTag {
 public:
  /// `text` begins with the tag's <.
  explicit SvgTag(std::string_view text);

  std::string_view text(std::string_view name) const;
  bool has(std::string_view name) const { return attributes_.contains(name); }
  /// In user units; percentages and other units that need more context are taken as `otherwise`.
  double length(std::string_view name, double otherwise = 0) const;
  /// A property, as an attribute or in `style`.
  std::string_view property(std::string_view name) const;
  /// The id that `url(#...)` in a property names; empty where there is none.
  std::string_view reference(std::string_view property_name) const;
  /// The id that href or xlink:href names.
  std::string_view href() const;
  SvgTransform transform() const { return parse_svg_transform(text("transform")); }

 private:
  std::map<std::string_view, std::string_view> attributes_;
};

struct SvgElement {
  std::string_view name;
  SvgTag tag;
  std::int64_t offset = 0;        // of its tag in the document
  std::int64_t content = 0;       // of what follows that tag
  std::int64_t close_offset = 0;  // of the tag that closes it, or its own
  std::size_t end = 0;            // the element after its last descendant
};

/// The elements of a well-formed document, in its order; the children of one follow it.
struct SvgDocument {
  std::string_view text;
  std::vector<SvgElement> elements;
  std::map<std::string_view, std::size_t> by_id;

  /// The element with that id; elements.size() where there is none.
  std::size_t find(std::string_view id) const;
};

/// `text` outlives what is returned. INVALID_ARGUMENT, with line and column, where tags do not nest.
absl::StatusOr<SvgDocument> parse_svg_document(std::string_view text);

/// The bounding box of a shape in its own units; empty for what is none.
SvgBox svg_shape_box(const SvgElement& element);
bool is_svg_shape(std::string_view name);

/// A length in user units, with `em` for font-relative ones; `otherwise` where there is none.
double svg_length(std::string_view value, double em, double otherwise);

/// The box of a text element, estimated, as no font is known: 0.6 em for each character, from 0.8 em above
/// the baseline to 0.2 em below it. `em` is the size of its font.
SvgBox svg_text_box(const SvgDocument& document, std::size_t element, double em);

}  // namespace cumulus::cli
