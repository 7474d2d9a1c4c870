// Lights a diffuse and a glossy sphere by an environment map, with 16, 64 and 256 directions a pixel: drawn
// evenly over the sphere, in proportion to the cosine, and from the map's sampling table. Cumulus decodes the
// map and builds the table; everything else is the renderer's. Prints the noise of each picture.
//
//     example_light_spheres [SERVER [MAP [PICTURE.ppm]]]
#include <cumulus/client.h>
#include <cumulus/sampling.h>
#include <cumulus/sampling_table.h>
#include <cumulus/summed_area_table.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace sampling = cumulus::sampling;

constexpr float kPi = 3.14159265F;

struct Vector {
  float x = 0;
  float y = 0;
  float z = 0;
};
Vector operator*(float a, const Vector& v) { return {a * v.x, a * v.y, a * v.z}; }
Vector operator+(const Vector& a, const Vector& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
float dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
float luminance(const Vector& rgb) { return dot(rgb, {0.2126F, 0.7152F, 0.0722F}); }

/// A lat-long map and its sampling table.
class Environment {
 public:
  static absl::StatusOr<Environment> load(const std::string& server, const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    if (bytes.empty()) return absl::NotFoundError("cannot read " + path);
    const cumulus::EncodedImage picture{std::as_bytes(std::span(bytes)), 0, {"R", "G", "B"}};
    absl::StatusOr<cumulus::Client> client = cumulus::Client::connect(server);
    if (!client.ok()) return client.status();
    absl::StatusOr<cumulus::Session> session = client->create_session();
    if (!session.ok()) return session.status();
    // A box of one pixel: the decoded picture itself.
    absl::StatusOr<cumulus::Result> decoded = session->run(cumulus::filter_box(picture, {.radius = 0}));
    if (!decoded.ok()) return decoded.status();
    absl::StatusOr<cumulus::Array> pixels = decoded->fetch("image");
    if (!pixels.ok()) return pixels.status();
    absl::StatusOr<cumulus::Result> built = session->run(
        cumulus::build_sampling_table(picture, {.invalid_weights = cumulus::InvalidWeights::kClamp}));
    if (!built.ok()) return built.status();
    absl::StatusOr<cumulus::Array> table = built->fetch("table");
    if (!table.ok()) return table.status();
    Environment environment(*std::move(pixels), *std::move(table));
    const auto size = environment.bytes_.bytes().size();
    const auto error = sampling::parse_header(environment.table_.data, size, size, environment.table_.header);
    if (error != sampling::TableError::kNone) return absl::InternalError(sampling::describe(error));
    return environment;
  }

  const sampling::TableView& table() const { return table_; }

  Vector radiance(const Vector& direction) const {
    const float coordinates[3] = {direction.x, direction.y, direction.z};
    float u = 0;
    float v = 0;
    sampling::position_of(coordinates, u, v);
    const std::size_t x = sampling::cell_of(u, table_.header.width);
    const std::size_t y = sampling::cell_of(v, table_.header.height);
    const float* rgb = pixels_data_ + 3 * (y * table_.header.width + x);
    return {std::max(rgb[0], 0.0F), std::max(rgb[1], 0.0F), std::max(rgb[2], 0.0F)};
  }

 private:
  Environment(cumulus::Array pixels, cumulus::Array bytes)
      : pixels_(std::move(pixels)),
        bytes_(std::move(bytes)),
        pixels_data_(reinterpret_cast<const float*>(pixels_.bytes().data())) {
    table_.data = reinterpret_cast<const unsigned char*>(bytes_.bytes().data());
  }

  cumulus::Array pixels_;
  cumulus::Array bytes_;
  const float* pixels_data_;
  sampling::TableView table_;
};

enum class Strategy { kUniform, kCosine, kTable };
constexpr std::array<std::pair<Strategy, const char*>, 3> kStrategies = {
    {{Strategy::kUniform, "uniform"}, {Strategy::kCosine, "cosine"}, {Strategy::kTable, "table"}}};

struct DrawnDirection {
  Vector direction;
  float pdf = 0;
};

Vector ring_point(float radius, float turn, float height) {
  return {radius * std::cos(2 * kPi * turn), radius * std::sin(2 * kPi * turn), height};
}

/// The direction for a point of the unit square in fixed point; `normal` is of unit length.
DrawnDirection draw(const Environment& light, Strategy strategy, const Vector& normal,
                    sampling::FixedPoint2 point) {
  if (strategy == Strategy::kTable) {
    const sampling::Sample sample = sampling::sample(light.table(), point.x, point.y);
    return {{sample.direction[0], sample.direction[1], sample.direction[2]}, sample.pdf};
  }
  const float turn = static_cast<float>(point.x) * 0x1p-32F;
  const float share = static_cast<float>(point.y) * 0x1p-32F;
  if (strategy == Strategy::kUniform) {
    const float height = 1 - 2 * share;
    return {ring_point(std::sqrt(std::max(0.0F, 1 - height * height)), turn, height), 0.25F / kPi};
  }
  // A frame around the normal (Duff et al., "Building an orthonormal basis, revisited", 2017).
  const float sign = std::copysign(1.0F, normal.z);
  const float a = -1.0F / (sign + normal.z);
  const float b = normal.x * normal.y * a;
  const Vector tangent{1 + sign * normal.x * normal.x * a, sign * b, -sign * normal.x};
  const Vector bitangent{b, sign + normal.y * normal.y * a, -normal.y};
  const float height = std::sqrt(1 - share);
  const Vector local = ring_point(std::sqrt(share), turn, height);
  return {local.x * tangent + local.y * bitangent + local.z * normal, height / kPi};
}

enum class Material { kDiffuse, kGlossy };

/// The BSDF times the cosine. The viewer is at +Z.
float reflected(Material material, const Vector& normal, const Vector& direction) {
  const float cosine = std::max(dot(normal, direction), 0.0F);
  if (material == Material::kDiffuse) return 0.8F / kPi * cosine;
  constexpr float kExponent = 60;
  const Vector mirror = 2 * normal.z * normal + Vector{0, 0, -1};
  const float lobe = std::pow(std::max(dot(mirror, direction), 0.0F), kExponent);
  return 0.8F * (kExponent + 2) / (2 * kPi) * lobe * cosine;
}

constexpr int kDiameter = 72;
constexpr int kCellWidth = 2 * kDiameter + 12;
constexpr int kCellHeight = kDiameter + 8;

/// Both spheres side by side, [kCellHeight, kCellWidth].
std::vector<Vector> render(const Environment& light, Strategy strategy, std::uint32_t samples) {
  std::vector<Vector> picture(kCellWidth * kCellHeight);
  for (int y = 0; y < kCellHeight; ++y) {
    for (int x = 0; x < kCellWidth; ++x) {
      const bool left = x < kCellWidth / 2;
      const float across = static_cast<float>(x) + 0.5F - (left ? 0.25F : 0.75F) * kCellWidth;
      const float up = 0.5F * kCellHeight - static_cast<float>(y) - 0.5F;
      Vector normal{2 * across / kDiameter, 2 * up / kDiameter, 0};
      const float depth = 1 - dot(normal, normal);
      if (depth <= 0) continue;
      normal.z = std::sqrt(depth);
      const std::size_t pixel = static_cast<std::size_t>(y) * kCellWidth + static_cast<std::size_t>(x);
      const sampling::FixedPoint2 shift = sampling::digital_shift(pixel + 1);
      Vector sum;
      for (std::uint32_t i = 0; i < samples; ++i) {
        const auto point = sampling::shifted_point(sampling::sobol_point(i), shift);
        const DrawnDirection drawn = draw(light, strategy, normal, point);
        const float factor =
            reflected(left ? Material::kDiffuse : Material::kGlossy, normal, drawn.direction);
        if (factor > 0 && drawn.pdf > 0) sum = sum + factor / drawn.pdf * light.radiance(drawn.direction);
      }
      picture[pixel] = 1.0F / static_cast<float>(samples) * sum;
    }
  }
  return picture;
}

/// Of one of the spheres: the root of the mean squared difference in luminance, over the mean luminance.
double noise(const std::vector<Vector>& picture, const std::vector<Vector>& reference, bool left) {
  double squares = 0;
  double sum = 0;
  double pixels = 0;
  for (std::size_t i = 0; i < picture.size(); ++i) {
    const double expected = luminance(reference[i]);
    if (expected <= 0 || (i % kCellWidth < kCellWidth / 2) != left) continue;
    const double difference = luminance(picture[i]) - expected;
    squares += difference * difference;
    sum += expected;
    ++pixels;
  }
  return std::sqrt(squares / pixels) / (sum / pixels);
}

/// Cells in rows, tone-mapped by the reference's mean, as a binary PPM; false where it cannot be written.
bool write_picture(const std::string& path, const std::vector<std::vector<Vector>>& cells,
                   std::size_t columns, const std::vector<Vector>& reference) {
  float mean = 0;
  for (const Vector& pixel : reference) mean += luminance(pixel) / static_cast<float>(reference.size());
  const std::size_t rows = cells.size() / columns;
  std::ofstream file(path, std::ios::binary);
  file << "P6\n" << columns * kCellWidth << ' ' << rows * kCellHeight << "\n255\n";
  for (std::size_t y = 0; y < rows * kCellHeight; ++y) {
    for (std::size_t x = 0; x < columns * kCellWidth; ++x) {
      const std::vector<Vector>& cell = cells[y / kCellHeight * columns + x / kCellWidth];
      const Vector& pixel = cell[y % kCellHeight * kCellWidth + x % kCellWidth];
      for (const float value : {pixel.x, pixel.y, pixel.z}) {
        const float screen = std::pow(1 - std::exp(-0.4F * value / mean), 1 / 2.2F);
        file.put(static_cast<char>(std::lround(255 * screen)));
      }
    }
  }
  file.close();
  return file.good();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string server = argc > 1 ? argv[1] : "127.0.0.1:50651";
  const absl::StatusOr<Environment> light = Environment::load(server, argc > 2 ? argv[2] : "sunrise.exr");
  if (!light.ok()) {
    std::cerr << light.status().message() << '\n';
    return 1;
  }
  constexpr std::uint32_t kReferenceSamples = 2048;
  const std::vector<Vector> reference = render(*light, Strategy::kTable, kReferenceSamples);
  std::vector<std::vector<Vector>> cells;
  for (const auto& [strategy, name] : kStrategies) {
    for (const std::uint32_t samples : {16U, 64U, 256U}) {
      cells.push_back(render(*light, strategy, samples));
      std::cout << name << ", " << samples << " samples: noise of the diffuse sphere "
                << noise(cells.back(), reference, true) << ", of the glossy one "
                << noise(cells.back(), reference, false) << '\n';
    }
    cells.push_back(reference);
  }
  if (argc > 3 && !write_picture(argv[3], cells, 4, reference)) {
    std::cerr << "cannot write " << argv[3] << '\n';
    return 1;
  }
  return 0;
}
