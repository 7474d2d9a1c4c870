// Lights a plane by a sky with a small, bright sun: Cumulus builds the sampling table, the renderer
// downloads it and draws from it.
#include <cumulus/client.h>
#include <cumulus/sampling.h>
#include <cumulus/sampling_table.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kWidth = 512;
constexpr std::int64_t kHeight = 256;

/// A lat-long map, one channel: a dim sky, and a sun of 2 by 2 pixels.
std::vector<float> make_sky() {
  std::vector<float> sky(kWidth * kHeight, 1.0F);
  for (const std::int64_t y : {60, 61}) {
    for (const std::int64_t x : {100, 101}) sky[static_cast<std::size_t>(y * kWidth + x)] = 50000.0F;
  }
  return sky;
}

absl::StatusOr<cumulus::Array> build_table(const std::string& server, const std::vector<float>& sky) {
  absl::StatusOr<cumulus::Client> client = cumulus::Client::connect(server);
  if (!client.ok()) return client.status();
  absl::StatusOr<cumulus::Session> session = client->create_session();
  if (!session.ok()) return session.status();
  absl::StatusOr<cumulus::Buffer> map = session->upload({sky, {kHeight, kWidth}});
  if (!map.ok()) return map.status();
  absl::StatusOr<cumulus::Result> result = session->run(cumulus::build_sampling_table(*map));
  if (!result.ok()) return result.status();
  return result->fetch("table");
}

/// The irradiance of a plane that faces up, estimated by `count` Sobol' points.
double estimate(const cumulus::sampling::TableView& table, const std::vector<float>& sky,
                std::uint32_t count) {
  double sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto point = cumulus::sampling::sobol_point(i);
    const auto sample = cumulus::sampling::sample(table, point.x, point.y);
    const double radiance = sky[static_cast<std::size_t>(sample.y) * kWidth + sample.x];
    sum += radiance * std::max(sample.direction[1], 0.0F) / sample.pdf;
  }
  return sum / count;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<float> sky = make_sky();
  const absl::StatusOr<cumulus::Array> bytes = build_table(argc > 1 ? argv[1] : "127.0.0.1:50651", sky);
  if (!bytes.ok()) {
    std::cerr << bytes.status().message() << '\n';
    return 1;
  }
  cumulus::sampling::TableView table;
  table.data = reinterpret_cast<const unsigned char*>(bytes->bytes().data());
  const auto size = bytes->bytes().size();
  if (parse_header(table.data, size, size, table.header) != cumulus::sampling::TableError::kNone) return 1;
  for (const std::uint32_t count : {16U, 256U, 4096U}) {
    std::cout << count << " samples: irradiance " << estimate(table, sky, count) << '\n';
  }
  return 0;
}
