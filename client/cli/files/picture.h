#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/files/finite.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"
#include "cli/job/report.h"
#include "cumulus/array.h"
#include "cumulus/operation.h"

// Pictures that a command reads, computes with and writes, so that what their files say stays with them.

namespace cumulus::cli {

/// What a user says of the pictures of a command.
struct PictureOptions {
  PictureChoice choice = {};  // of the input
  NonFinite non_finite = NonFinite::kRefuse;
  std::optional<ElementType> samples = {};  // of the output; absent: as the input has them, where they fit
  std::string compression = {};             // likewise
};

/// An image file's picture, or the array of a .npy file.
struct PictureInput {
  std::string path;
  Array pixels;                                        // of an image file [height, width, channels]
  std::optional<ImagePicture> image = std::nullopt;    // all but its pixels; absent: from a .npy file
  std::optional<ElementType> integers = std::nullopt;  // that the samples were, and could be again
  NonFiniteValues non_finite = {};
  std::vector<std::string> channel_names() const {
    return image.has_value() ? image->channel_names : std::vector<std::string>();
  }
};

/// Reads `path`, an image file as `as` says, and refuses or changes what is not finite.
absl::StatusOr<PictureInput> read_picture(const std::string& path, ReadAs as, const PictureOptions& options,
                                          bool all_channels = false);

/// For reading a picture for an operation that refuses what is not finite where `options` say so: not
/// searched here, unless the operation will not run (`dry_run`).
PictureOptions searched_by_server(PictureOptions options, bool dry_run);
/// What that operation is told.
NonFinitePixels policy_of_server(const PictureOptions& options);
/// Of its refusal of a pixel that is not finite: names the first and counts the others, as read_picture does.
/// Other statuses are left as they are. `pixels` is what was uploaded.
absl::Status count_non_finite(const absl::Status& refusal, const PictureInput& input, Array& pixels);

/// Whether a picture made of `from` can be written at `path`: its type of samples, and numbers beyond 0 to 1
/// unless `in_range`, as they are not where `from` had integers and the result stays within theirs.
absl::Status check_room(const std::string& path, const PictureInput& from, const PictureOptions& options,
                        bool in_range);

/// Writes what became of `from`, with all of its file's metadata that has a place in the new file: [height,
/// width, channels], floats of 0 to 1 where `from` had integers. A .npy file gets the array as it is.
absl::Status write_picture(const std::string& path, const ArrayView& picture, const PictureInput& from,
                           const PictureOptions& options, bool in_range);
/// Likewise, also where `picture` has gone into its file already.
absl::Status write_picture(const std::string& path, const FileArray& picture, const PictureInput& from,
                           const PictureOptions& options, bool in_range);

/// Of a picture in colours whose samples `output` holds as they were: that viewers take a file of its format
/// for linear where they take the input's for sRGB, or the other way round.
std::vector<std::string> coding_warnings(const PictureInput& input, const std::string& output);

/// Says which of several pictures was taken, which numbers were changed, and what `outputs` do not keep of
/// the input; `more` are further warnings.
void describe_picture(const PictureInput& input, const PictureOptions& options,
                      const std::vector<std::string>& outputs, Report& report,
                      std::vector<std::string> more = {});

}  // namespace cumulus::cli
