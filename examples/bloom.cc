// The glow around bright lights, as renderers add it to an HDR picture: a sum of Gaussians of growing width.
// The picture goes to the server once, each Gaussian is added to the sum there, and only the sum comes back.
#include <cumulus/client.h>
#include <cumulus/recursive_filter.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::int64_t kWidth = 960;
constexpr std::int64_t kHeight = 540;
constexpr std::int64_t kChannels = 3;

struct Glow {
  double sigma;
  double weight;
};
/// A tenth of the light glows, most of it nearby.
constexpr Glow kGlows[] = {{2, 0.04}, {8, 0.03}, {32, 0.02}, {128, 0.01}};

/// A street at night: a dim slope, and a row of lamps that grow smaller and redder.
std::vector<float> make_street() {
  std::vector<float> street;
  for (std::int64_t y = 0; y < kHeight; ++y) {
    for (std::int64_t x = 0; x < kWidth; ++x) {
      const float dim = 0.02F + 0.03F * static_cast<float>(y) / kHeight;
      street.insert(street.end(), {0.6F * dim, 0.8F * dim, dim});
    }
  }
  for (std::int64_t lamp = 0; lamp < 6; ++lamp) {
    const std::int64_t size = 12 - 2 * lamp;
    for (std::int64_t y = 0; y < size; ++y) {
      for (std::int64_t x = 0; x < size; ++x) {
        float* pixel = &street[static_cast<std::size_t>(
            ((160 + 22 * lamp + y) * kWidth + 90 + 150 * lamp + x) * kChannels)];
        pixel[0] = 400.0F;
        pixel[1] = 300.0F - 30.0F * static_cast<float>(lamp);
        pixel[2] = 180.0F - 30.0F * static_cast<float>(lamp);
      }
    }
  }
  return street;
}

absl::StatusOr<cumulus::Array> add_bloom(const std::string& server, const std::vector<float>& picture) {
  absl::StatusOr<cumulus::Client> client = cumulus::Client::connect(server);
  if (!client.ok()) return client.status();
  absl::StatusOr<cumulus::Session> session = client->create_session();
  if (!session.ok()) return session.status();
  absl::StatusOr<cumulus::Buffer> image = session->upload({picture, {kHeight, kWidth, kChannels}});
  if (!image.ok()) return image.status();
  std::vector<cumulus::Buffer> sums;
  for (const Glow& glow : kGlows) {
    const cumulus::AxisKernel blur{cumulus::GaussianKernel{glow.sigma}, cumulus::ImageBoundary::kClamp};
    const cumulus::Buffer& sum_so_far = sums.empty() ? *image : sums.back();
    absl::StatusOr<cumulus::Result> result = session->run(cumulus::apply_recursive_filter(
        *image, {.y = blur, .x = blur, .accumulate = sum_so_far, .weight = glow.weight}));
    if (!result.ok()) return result.status();
    absl::StatusOr<cumulus::Buffer> sum = result->take_buffer("image");
    if (!sum.ok()) return sum.status();
    sums.push_back(*std::move(sum));
  }
  return session->download(sums.back());
}

/// A picture for any viewer of HDR files, rows from the bottom up.
void write_pfm(const std::string& path, std::span<const float> pixels) {
  std::ofstream file(path, std::ios::binary);
  file << "PF\n" << kWidth << ' ' << kHeight << "\n-1.0\n";
  constexpr std::int64_t kRow = kWidth * kChannels;
  for (std::int64_t y = kHeight - 1; y >= 0; --y) {
    file.write(reinterpret_cast<const char*>(pixels.data() + y * kRow),
               kRow * static_cast<std::int64_t>(sizeof(float)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<cumulus::Array> bloomed =
      add_bloom(argc > 1 ? argv[1] : "127.0.0.1:50651", make_street());
  if (!bloomed.ok()) {
    std::cerr << bloomed.status().message() << '\n';
    return 1;
  }
  const std::span<const float> pixels = *bloomed->values<float>();
  std::cout << "the brightest value is " << *std::max_element(pixels.begin(), pixels.end()) << '\n';
  if (argc > 2) write_pfm(argv[2], pixels);
  return 0;
}
