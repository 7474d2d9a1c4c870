// Lights a plane by a sky with a small, bright sun, on the GPU: the server builds the sampling table on the
// same GPU, and the program's own kernel draws from it where it lies. The table is never downloaded.
//
//     cumulusd --shared-device-memory 256M &
//     example_shared_table [SERVER [SAMPLES]]
#include <cuda_runtime.h>
#include <cumulus/client.h>
#include <cumulus/device_sharing.h>
#include <cumulus/sampling.h>
#include <cumulus/sampling_table.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace {

namespace sampling = cumulus::sampling;

constexpr std::uint32_t kWidth = 512;
constexpr std::uint32_t kHeight = 256;
constexpr std::uint32_t kSunRow = 60;
constexpr std::uint32_t kSunColumn = 100;

/// A lat-long map, one channel: a dim sky, and a sun of 2 by 2 pixels.
CUMULUS_HOST_DEVICE float radiance_of(std::uint32_t x, std::uint32_t y) {
  return y - kSunRow < 2 && x - kSunColumn < 2 ? 50000.0F : 1.0F;
}

std::vector<float> make_sky() {
  std::vector<float> sky(std::size_t{kWidth} * kHeight);
  for (std::uint32_t i = 0; i < kWidth * kHeight; ++i) sky[i] = radiance_of(i % kWidth, i / kWidth);
  return sky;
}

/// What a plane that faces up receives: over a texel the cosine is integrated in closed form.
double exact_irradiance() {
  constexpr double kPi = 3.14159265358979;
  double sum = 0;
  for (std::uint32_t y = 0; y < kHeight / 2; ++y) {
    const double top = std::sin(kPi * y / kHeight);
    const double bottom = std::sin(kPi * (y + 1) / kHeight);
    for (std::uint32_t x = 0; x < kWidth; ++x)
      sum += radiance_of(x, y) * (bottom * bottom - top * top) / 2 * (2 * kPi / kWidth);
  }
  return sum;
}

/// Owns `sums`, [2]: writes to it the sums of all samples' irradiance and density. Reads the table. Waits for
/// nothing. Sobol' points, as the server's DrawSamples takes them.
__global__ void light_plane(sampling::TableView table, std::uint32_t count, double* sums) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const auto point = sampling::sobol_point(i);
  const sampling::Sample sample = sampling::sample(table, point.x, point.y);
  const double up = sample.direction[1] > 0 ? sample.direction[1] : 0;
  atomicAdd(&sums[0], radiance_of(sample.x, sample.y) * up / sample.pdf);
  atomicAdd(&sums[1], static_cast<double>(sample.pdf));
}

struct Means {
  double irradiance = 0;
  double pdf = 0;
};

absl::Status cuda_status(cudaError_t error) {
  return error == cudaSuccess ? absl::OkStatus() : absl::InternalError(cudaGetErrorString(error));
}

absl::StatusOr<Means> light_on_gpu(const cumulus::DeviceArray& array, std::uint32_t count) {
  const auto bytes = static_cast<std::uint64_t>(array.size_bytes());
  std::array<unsigned char, sampling::kHeaderBytes> head{};  // all that the host sees of the table
  sampling::TableView table;
  table.data = static_cast<const unsigned char*>(array.data());
  (void)cudaMemcpy(head.data(), table.data, std::min<std::size_t>(bytes, head.size()),
                   cudaMemcpyDeviceToHost);
  if (sampling::parse_header(head.data(), head.size(), bytes, table.header) != sampling::TableError::kNone)
    return absl::InternalError("the server's table is none");
  double* sums = nullptr;
  std::array<double, 2> total{};
  (void)cudaMalloc(&sums, sizeof(total));
  (void)cudaMemset(sums, 0, sizeof(total));
  light_plane<<<(count + 255) / 256, 256>>>(table, count, sums);
  // Ends the kernel too, so that the table may go.
  const cudaError_t error = cudaMemcpy(total.data(), sums, sizeof(total), cudaMemcpyDeviceToHost);
  (void)cudaFree(sums);
  if (error != cudaSuccess) return cuda_status(error);
  return Means{total[0] / count, total[1] / count};
}

absl::StatusOr<double> mean_pdf_of_server(const cumulus::Session& session, const cumulus::Buffer& table,
                                          std::uint32_t count) {
  absl::StatusOr<cumulus::Result> drawn =
      session.run(cumulus::draw_samples(table, {.count = static_cast<std::int64_t>(count)}));
  if (!drawn.ok()) return drawn.status();
  const absl::StatusOr<cumulus::Array> pdf = drawn->fetch("pdf");
  if (!pdf.ok()) return pdf.status();
  const absl::StatusOr<std::span<const float>> values = pdf->values<float>();
  if (!values.ok()) return values.status();
  return std::accumulate(values->begin(), values->end(), 0.0) / count;
}

absl::Status run(const std::string& server, std::uint32_t count) {
  if (const absl::Status context = cuda_status(cudaSetDevice(0)); !context.ok()) return context;
  absl::StatusOr<cumulus::Client> client = cumulus::Client::connect(server);
  if (!client.ok()) return client.status();
  absl::StatusOr<cumulus::Session> session = client->create_session();
  if (!session.ok()) return session.status();
  const std::vector<float> sky = make_sky();
  absl::StatusOr<cumulus::Buffer> map = session->upload({sky, {kHeight, kWidth}});
  if (!map.ok()) return map.status();
  absl::StatusOr<cumulus::Result> result = session->run(cumulus::build_sampling_table(*map));
  if (!result.ok()) return result.status();
  absl::StatusOr<cumulus::Buffer> table = result->take_buffer("table");
  if (!table.ok()) return table.status();

  absl::StatusOr<cumulus::DeviceArray> here = cumulus::import_buffer(*table);
  if (!here.ok()) return here.status();
  const absl::StatusOr<Means> means = light_on_gpu(*here, count);
  if (!means.ok()) return means.status();
  const absl::StatusOr<double> server_pdf = mean_pdf_of_server(*session, *table, count);
  if (!server_pdf.ok()) return server_pdf.status();
  std::cout << count << " samples: irradiance " << means->irradiance << ", exactly " << exact_irradiance()
            << "; mean density " << means->pdf << ", of the server's samples " << *server_pdf << '\n';
  const bool same = std::abs(means->pdf - *server_pdf) < 1e-5 * *server_pdf;
  return same ? absl::OkStatus() : absl::InternalError("the kernel drew other samples than the server does");
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint32_t count = argc > 2 ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 65536;
  const absl::Status status = run(argc > 1 ? argv[1] : "127.0.0.1:50651", std::max(count, 1U));
  if (!status.ok()) std::cerr << status.message() << '\n';
  return status.ok() ? 0 : 1;
}
