// The glow around bright lights, as renderers add it to an HDR picture: a sum of Gaussians of growing width
// over a lat-long map, which wraps around in x. The map's file goes to the server once, each Gaussian is
// added to the sum there, and only the sum comes back.
//
//     example_bloom [SERVER [MAP [BLOOM.pfm]]]
#include <cumulus/client.h>
#include <cumulus/recursive_filter.h>
#include <cumulus/summed_area_table.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Glow {
  double sigma;
  double weight;
};
/// A tenth of the light glows, most of it nearby.
constexpr Glow kGlows[] = {{2, 0.04}, {8, 0.03}, {32, 0.02}, {128, 0.01}};

absl::StatusOr<cumulus::Buffer> decode(const cumulus::Session& session, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.empty()) return absl::NotFoundError("cannot read " + path);
  const cumulus::EncodedImage picture{std::as_bytes(std::span(bytes)), 0, {"R", "G", "B"}};
  // A box of one pixel: the picture itself, as floats.
  absl::StatusOr<cumulus::Result> decoded = session.run(cumulus::filter_box(picture, {.radius = 0}));
  if (!decoded.ok()) return decoded.status();
  return decoded->take_buffer("image");
}

absl::StatusOr<cumulus::Array> add_bloom(const std::string& server, const std::string& path) {
  absl::StatusOr<cumulus::Client> client = cumulus::Client::connect(server);
  if (!client.ok()) return client.status();
  absl::StatusOr<cumulus::Session> session = client->create_session();
  if (!session.ok()) return session.status();
  absl::StatusOr<cumulus::Buffer> image = decode(*session, path);
  if (!image.ok()) return image.status();
  std::vector<cumulus::Buffer> sums;
  for (const Glow& glow : kGlows) {
    const cumulus::GaussianKernel blur{glow.sigma};
    const cumulus::Buffer& sum_so_far = sums.empty() ? *image : sums.back();
    absl::StatusOr<cumulus::Result> result = session->run(cumulus::apply_recursive_filter(
        *image, {.y = cumulus::AxisKernel{blur, cumulus::ImageBoundary::kClamp},
                 .x = cumulus::AxisKernel{blur, cumulus::ImageBoundary::kRepeat},
                 .accumulate = sum_so_far,
                 .weight = glow.weight}));
    if (!result.ok()) return result.status();
    absl::StatusOr<cumulus::Buffer> sum = result->take_buffer("image");
    if (!sum.ok()) return sum.status();
    sums.push_back(*std::move(sum));
  }
  return session->download(sums.back());
}

/// A picture for any viewer of HDR files, rows from the bottom up. Whether all of it could be written.
bool write_pfm(const std::string& path, const cumulus::Array& picture, std::span<const float> pixels) {
  const std::int64_t height = picture.shape()[0];
  const std::int64_t width = picture.shape()[1];
  std::ofstream file(path, std::ios::binary);
  file << "PF\n" << width << ' ' << height << "\n-1.0\n";
  const std::int64_t row = width * 3;
  for (std::int64_t y = height - 1; y >= 0; --y) {
    file.write(reinterpret_cast<const char*>(pixels.data() + y * row),
               row * static_cast<std::int64_t>(sizeof(float)));
  }
  file.close();
  return !file.fail();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<cumulus::Array> bloomed =
      add_bloom(argc > 1 ? argv[1] : "127.0.0.1:50651", argc > 2 ? argv[2] : "sunrise.exr");
  if (!bloomed.ok()) {
    std::cerr << bloomed.status().message() << '\n';
    return 1;
  }
  const std::span<const float> pixels = *bloomed->values<float>();
  std::cout << "the brightest value is " << *std::max_element(pixels.begin(), pixels.end()) << '\n';
  if (argc > 3 && !write_pfm(argv[3], *bloomed, pixels)) {
    std::cerr << "cannot write " << argv[3] << '\n';
    return 1;
  }
  return 0;
}
