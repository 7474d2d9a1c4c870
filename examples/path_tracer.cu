// A path tracer in one file, for CUDA or for the CPU: spheres on a floor under a lat-long map, of which a
// sampling table draws directions through cumulus/sampling.h. Compiled by nvcc it renders on the GPU where
// there is one, by a C++ compiler (with -x c++) on the CPU, of the same functions.
//
//     example_path_tracer TABLE.cst MAP.npy PICTURE.pfm|.ppm [SAMPLES [mis|table|bsdf [WIDTH]]]
//
// TABLE is what `cumulus sampling-table MAP.npy -o TABLE.cst` writes, MAP a float32 array [height, width, 3].
#include <cumulus/sampling.h>
#include <cumulus/table_file.h>

#if defined(__CUDACC__)
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#endif

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace sampling = cumulus::sampling;

constexpr float kPi = 3.14159265F;
constexpr int kMaxScatterings = 6;
constexpr float kOffset = 1e-3F;  // of a ray's origin from the surface that it leaves

struct Vector {
  float x = 0;
  float y = 0;
  float z = 0;
};
CUMULUS_HOST_DEVICE Vector operator*(float a, const Vector& v) { return {a * v.x, a * v.y, a * v.z}; }
CUMULUS_HOST_DEVICE Vector operator*(const Vector& a, const Vector& b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z};
}
CUMULUS_HOST_DEVICE Vector operator+(const Vector& a, const Vector& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
CUMULUS_HOST_DEVICE float dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
CUMULUS_HOST_DEVICE Vector unit(const Vector& v) { return 1 / sqrtf(dot(v, v)) * v; }
CUMULUS_HOST_DEVICE Vector mirrored(const Vector& direction, const Vector& normal) {
  return direction + -2 * dot(direction, normal) * normal;
}

/// The map and its table, both in the memory of the processor that renders.
struct Light {
  sampling::TableView table;
  const float* rgb = nullptr;  // [height, width, 3]

  CUMULUS_HOST_DEVICE Vector radiance(const Vector& direction) const {
    const float coordinates[3] = {direction.x, direction.y, direction.z};
    float u = 0;
    float v = 0;
    sampling::position_of(coordinates, u, v);
    const std::size_t row = sampling::cell_of(v, table.header.height);
    const float* texel = rgb + 3 * (row * table.header.width + sampling::cell_of(u, table.header.width));
    return {texel[0], texel[1], texel[2]};
  }

  CUMULUS_HOST_DEVICE float pdf(const Vector& direction) const {
    const float coordinates[3] = {direction.x, direction.y, direction.z};
    return sampling::pdf(table, coordinates);
  }
};

struct Ray {
  Vector origin;
  Vector direction;  // of unit length
};

enum class Surface { kDiffuse, kGlossy, kMirror };

struct Material {
  Surface surface = Surface::kDiffuse;
  Vector albedo;
};

struct Hit {
  float distance = 1e30F;
  Vector position;
  Vector normal;
  Material material;
};

struct Sphere {
  Vector centre;
  float radius;
  Material material;
};

CUMULUS_HOST_DEVICE void intersect(const Ray& ray, const Sphere& sphere, Hit& hit) {
  const Vector from_centre = ray.origin + -1 * sphere.centre;
  const float half = dot(from_centre, ray.direction);
  const float root = half * half - dot(from_centre, from_centre) + sphere.radius * sphere.radius;
  if (root < 0) return;
  const float distance = -half - sqrtf(root);  // the eye and all origins are outside
  if (distance <= 0 || distance >= hit.distance) return;
  hit.distance = distance;
  hit.position = ray.origin + distance * ray.direction;
  hit.normal = unit(hit.position + -1 * sphere.centre);
  hit.material = sphere.material;
}

/// A floor at y = 0, chequered, as far as 8 from the middle.
CUMULUS_HOST_DEVICE void intersect_floor(const Ray& ray, Hit& hit) {
  const float distance = -ray.origin.y / ray.direction.y;
  if (!(distance > 0) || distance >= hit.distance) return;
  const Vector position = ray.origin + distance * ray.direction;
  if (position.x * position.x + position.z * position.z > 64) return;
  const bool dark = (static_cast<int>(floorf(position.x)) + static_cast<int>(floorf(position.z))) % 2 != 0;
  hit.distance = distance;
  hit.position = position;
  hit.normal = {0, 1, 0};
  hit.material = {Surface::kDiffuse, dark ? Vector{0.25F, 0.25F, 0.28F} : Vector{0.7F, 0.7F, 0.65F}};
}

CUMULUS_HOST_DEVICE bool find_hit(const Ray& ray, Hit& hit) {
  const Sphere spheres[] = {{{-2.1F, 0.9F, 0}, 0.9F, {Surface::kDiffuse, {0.75F, 0.35F, 0.3F}}},
                            {{0, 0.9F, -0.8F}, 0.9F, {Surface::kMirror, {0.9F, 0.9F, 0.9F}}},
                            {{2.1F, 0.9F, 0}, 0.9F, {Surface::kGlossy, {0.8F, 0.7F, 0.4F}}},
                            {{0.5F, 0.35F, 1.2F}, 0.35F, {Surface::kDiffuse, {0.3F, 0.5F, 0.75F}}}};
  for (const Sphere& sphere : spheres) intersect(ray, sphere, hit);
  intersect_floor(ray, hit);
  return hit.distance < 1e30F;
}

/// What a surface does for two directions: its BSDF without the albedo, times the cosine, and the density
/// with which `scatter` draws the outgoing one.
struct Lobe {
  float value = 0;
  float pdf = 0;
};

constexpr float kExponent = 60;  // of the glossy lobe, Phong's

CUMULUS_HOST_DEVICE Lobe lobe_of(const Hit& hit, const Vector& incoming, const Vector& outgoing) {
  const float cosine = dot(hit.normal, outgoing);
  if (cosine <= 0) return {};
  if (hit.material.surface == Surface::kDiffuse) return {cosine / kPi, cosine / kPi};
  const float nearness = dot(mirrored(incoming, hit.normal), outgoing);
  if (nearness <= 0) return {};
  const float power = powf(nearness, kExponent) / (2 * kPi);
  return {(kExponent + 2) * power * cosine, (kExponent + 1) * power};
}

/// Turns a direction from around +Z to around `axis` (Duff et al., "Building an orthonormal basis,
/// revisited", 2017).
CUMULUS_HOST_DEVICE Vector turned(const Vector& local, const Vector& axis) {
  const float sign = axis.z < 0 ? -1.0F : 1.0F;
  const float a = -1.0F / (sign + axis.z);
  const float b = axis.x * axis.y * a;
  const Vector tangent{1 + sign * axis.x * axis.x * a, sign * b, -sign * axis.x};
  const Vector bitangent{b, sign + axis.y * axis.y * a, -axis.y};
  return local.x * tangent + local.y * bitangent + local.z * axis;
}

/// Points of the unit square, one after the other, of one path.
struct Random {
  std::uint64_t path;
  std::uint32_t index = 0;

  CUMULUS_HOST_DEVICE sampling::FixedPoint2 next() { return sampling::random_point(index++, path); }
};

CUMULUS_HOST_DEVICE float real(std::uint32_t fixed) { return static_cast<float>(fixed >> 8) * 0x1p-24F; }

CUMULUS_HOST_DEVICE Vector scatter(const Hit& hit, const Vector& incoming, Random& random) {
  if (hit.material.surface == Surface::kMirror) return mirrored(incoming, hit.normal);
  const sampling::FixedPoint2 point = random.next();
  const bool diffuse = hit.material.surface == Surface::kDiffuse;
  const float height = powf(1 - real(point.y), 1 / (diffuse ? 2 : kExponent + 1));
  const float ring = sqrtf(1 - height * height > 0 ? 1 - height * height : 0);
  const float turn = 2 * kPi * real(point.x);
  return turned({ring * cosf(turn), ring * sinf(turn), height},
                diffuse ? hit.normal : mirrored(incoming, hit.normal));
}

enum class Strategy { kMis, kTable, kBsdf };

/// Light that reaches the hit directly, along a direction of the table.
CUMULUS_HOST_DEVICE Vector light_of_table(const Light& light, const Hit& hit, const Vector& incoming,
                                          Strategy strategy, Random& random) {
  const sampling::FixedPoint2 point = random.next();
  const sampling::Sample sample = sampling::sample(light.table, point.x, point.y);
  const Vector direction{sample.direction[0], sample.direction[1], sample.direction[2]};
  const Lobe lobe = lobe_of(hit, incoming, direction);
  Hit blocker;
  if (lobe.value <= 0 || sample.pdf <= 0 ||
      find_hit({hit.position + kOffset * hit.normal, direction}, blocker))
    return {};
  const float density = sample.pdf + (strategy == Strategy::kMis ? lobe.pdf : 0);  // the balance heuristic
  return lobe.value / density * (hit.material.albedo * light.radiance(direction));
}

/// What light_of_table has left of the light along a ray that `pdf` has drawn; 0: of the eye or a mirror.
CUMULUS_HOST_DEVICE float share_of_ray(const Light& light, const Vector& direction, float pdf,
                                       Strategy strategy) {
  if (pdf == 0 || strategy == Strategy::kBsdf) return 1;
  return strategy == Strategy::kTable ? 0 : pdf / (pdf + light.pdf(direction));
}

/// The radiance along a ray, an estimate without bias but for paths of more than kMaxScatterings.
CUMULUS_HOST_DEVICE Vector trace(const Light& light, Ray ray, Strategy strategy, Random& random) {
  Vector sum;
  Vector throughput{1, 1, 1};
  float pdf = 0;
  for (int scatterings = 0;; ++scatterings) {
    Hit hit;
    if (!find_hit(ray, hit)) {
      const float share = share_of_ray(light, ray.direction, pdf, strategy);
      return share > 0 ? sum + share * (throughput * light.radiance(ray.direction)) : sum;
    }
    if (scatterings == kMaxScatterings) return sum;
    const bool mirror = hit.material.surface == Surface::kMirror;
    if (!mirror && strategy != Strategy::kBsdf)
      sum = sum + throughput * light_of_table(light, hit, ray.direction, strategy, random);
    const Vector direction = scatter(hit, ray.direction, random);
    const Lobe lobe = mirror ? Lobe{1, 1} : lobe_of(hit, ray.direction, direction);
    if (lobe.pdf <= 0) return sum;
    throughput = lobe.value / lobe.pdf * (throughput * hit.material.albedo);
    pdf = mirror ? 0 : lobe.pdf;
    ray = {hit.position + kOffset * hit.normal, direction};
  }
}

struct Settings {
  int width = 640;
  int height = 360;
  std::uint32_t samples = 64;
  Strategy strategy = Strategy::kMis;
};

CUMULUS_HOST_DEVICE Vector render_pixel(const Light& light, const Settings& settings, int x, int y) {
  Vector sum;
  const auto pixel = static_cast<std::uint64_t>(y * settings.width + x);
  for (std::uint32_t i = 0; i < settings.samples; ++i) {
    Random random{pixel << 32 | i};
    const sampling::FixedPoint2 point = random.next();
    const float scale = 2.0F / static_cast<float>(settings.width);
    const float right = (static_cast<float>(x) + real(point.x)) * scale - 1;
    const float up =
        (0.5F * static_cast<float>(settings.height) - static_cast<float>(y) - real(point.y)) * scale;
    const Ray ray{{0, 1.7F, 6}, unit({0.6F * right, 0.6F * up - 0.13F, -1})};
    sum = sum + trace(light, ray, settings.strategy, random);
  }
  return 1 / static_cast<float>(settings.samples) * sum;
}

std::vector<Vector> render_on_cpu(const Light& light, const Settings& settings) {
  std::vector<Vector> picture(static_cast<std::size_t>(settings.width * settings.height));
  std::vector<std::thread> threads;
  const int count = static_cast<int>(std::thread::hardware_concurrency()) + 1;
  for (int first = 0; first < count; ++first) {
    threads.emplace_back([&picture, &light, &settings, first, count] {
      for (int y = first; y < settings.height; y += count) {
        for (int x = 0; x < settings.width; ++x)
          picture[static_cast<std::size_t>(y * settings.width + x)] = render_pixel(light, settings, x, y);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return picture;
}

#if defined(__CUDACC__)
__global__ void render_kernel(Light light, Settings settings, Vector* picture) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x < settings.width && y < settings.height)
    picture[y * settings.width + x] = render_pixel(light, settings, x, y);
}

std::vector<Vector> render_on_gpu(const Light& light, std::size_t table_bytes, const Settings& settings) {
  const sampling::TableHeader& header = light.table.header;
  const thrust::device_vector<unsigned char> table(light.table.data, light.table.data + table_bytes);
  const thrust::device_vector<float> rgb(light.rgb,
                                         light.rgb + std::size_t{3} * header.width * header.height);
  thrust::device_vector<Vector> picture(static_cast<std::size_t>(settings.width * settings.height));
  Light there = light;
  there.table.data = thrust::raw_pointer_cast(table.data());
  there.rgb = thrust::raw_pointer_cast(rgb.data());
  const dim3 block(8, 8);
  const dim3 grid(static_cast<unsigned>(settings.width + 7) / 8,
                  static_cast<unsigned>(settings.height + 7) / 8);
  render_kernel<<<grid, block>>>(there, settings, thrust::raw_pointer_cast(picture.data()));
  std::vector<Vector> out(picture.size());
  thrust::copy(picture.begin(), picture.end(),
               out.begin());  // waits for the kernel, and throws what went wrong
  return out;
}

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}
#else
bool has_gpu() { return false; }
std::vector<Vector> render_on_gpu(const Light&, std::size_t, const Settings&) { return {}; }
#endif

/// A .npy file of float32 [height, width, 3], as NumPy and the command line write it.
std::optional<std::vector<float>> read_map(const std::string& path, const sampling::TableHeader& header) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::string shape = std::to_string(header.height) + ", " + std::to_string(header.width) + ", 3)";
  const std::size_t end = bytes.find('\n');
  const std::size_t count = std::size_t{3} * header.width * header.height;
  if (end == std::string::npos || bytes.size() != end + 1 + count * sizeof(float)) return std::nullopt;
  const auto names = [head = bytes.substr(0, end)](const std::string& what) {
    return head.find(what) != head.npos;
  };
  if (!names("'<f4'") || !names("False") || !names(shape)) return std::nullopt;
  std::vector<float> values(count);
  std::memcpy(values.data(), &bytes[end + 1], count * sizeof(float));
  return values;
}

/// .ppm with a tone curve, else .pfm.
bool write_picture(const std::string& path, const std::vector<Vector>& picture, const Settings& settings) {
  const bool eight_bits = path.size() > 4 && path.substr(path.size() - 4) == ".ppm";
  std::ofstream file(path, std::ios::binary);
  file << (eight_bits ? "P6\n" : "PF\n") << settings.width << ' ' << settings.height << '\n'
       << (eight_bits ? "255\n" : "-1.0\n");
  for (int row = 0; row < settings.height; ++row) {
    const int y = eight_bits ? row : settings.height - 1 - row;
    const Vector* pixels = &picture[static_cast<std::size_t>(y * settings.width)];
    if (!eight_bits) {
      file.write(reinterpret_cast<const char*>(pixels),
                 static_cast<std::streamsize>(sizeof(Vector)) * settings.width);
      continue;
    }
    for (int x = 0; x < settings.width; ++x) {
      for (const float value : {pixels[x].x, pixels[x].y, pixels[x].z})
        file.put(static_cast<char>(std::lround(255 * std::pow(1 - std::exp(-value), 1 / 2.2F))));
    }
  }
  file.close();
  return file.good();
}

int fail(const std::string& message) {
  std::cerr << "example_path_tracer: " << message << '\n';
  return 1;
}

std::optional<Settings> settings_of(int argc, char** argv) {
  Settings settings;
  const std::string strategy = argc > 5 ? argv[5] : "mis";
  if (strategy != "mis" && strategy != "table" && strategy != "bsdf") return std::nullopt;
  settings.strategy = strategy == "mis"     ? Strategy::kMis
                      : strategy == "table" ? Strategy::kTable
                                            : Strategy::kBsdf;
  const int samples = argc > 4 ? std::atoi(argv[4]) : 64;
  settings.width = argc > 6 ? std::atoi(argv[6]) : 640;
  if (samples < 1 || settings.width < 2 || settings.width > 16384) return std::nullopt;
  settings.samples = static_cast<std::uint32_t>(samples);
  settings.height = settings.width * 9 / 16;
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Settings> settings = argc < 4 || argc > 7 ? std::nullopt : settings_of(argc, argv);
  if (!settings)
    return fail("TABLE.cst MAP.npy PICTURE.pfm|.ppm [SAMPLES [mis|table|bsdf [WIDTH]]] is right");
  const sampling::OpenedTable opened = sampling::open_table(argv[1]);
  if (!opened) return fail(std::string(argv[1]) + ": " + opened.what());
  const sampling::TableHeader& header = opened.view.header;
  if (header.projection != sampling::Projection::kLatLong)
    return fail(std::string(argv[1]) +
                ": the table is no lat-long map's; build it with --projection lat-long");
  const std::optional<std::vector<float>> rgb = read_map(argv[2], header);
  if (!rgb)
    return fail(std::string(argv[2]) + " is no float32 .npy array of the table's " +
                std::to_string(header.height) + " x " + std::to_string(header.width) +
                " texels and 3 channels");
  const Light light{opened.view, rgb->data()};
  const auto start = std::chrono::steady_clock::now();
  const bool gpu = has_gpu();
  const std::vector<Vector> picture =
      gpu ? render_on_gpu(light, opened.memory.size() * sizeof(std::uint64_t), *settings)
          : render_on_cpu(light, *settings);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  if (!write_picture(argv[3], picture, *settings)) return fail(std::string("cannot write ") + argv[3]);
  std::cout << settings->width << " x " << settings->height << ", " << settings->samples
            << " paths a pixel: " << time.count() << " s on the " << (gpu ? "GPU" : "CPU") << '\n';
  return 0;
}
