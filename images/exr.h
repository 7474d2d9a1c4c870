#pragma once

#include <OpenEXR/ImfCompression.h>

#include <string>
#include <string_view>

// What reading and writing OpenEXR files have in common.

namespace cumulus::images {

/// Lets OpenEXR use as many threads as images/samples.h says.
void use_all_threads();

/// "zip", as the names of compressions are written everywhere.
std::string compression_name(Imf::Compression compression);
/// By its name. Throws where there is none of that name.
Imf::Compression compression_named(const std::string& name);

/// Whether an attribute of that name is a field of Metadata or of Header, or the file's own matter.
bool has_a_field(std::string_view name);

/// The order in which channels are given: by layer, and within a layer R, G, B, Y, A and then by name.
bool comes_before(const std::string& a, const std::string& b);

}  // namespace cumulus::images
