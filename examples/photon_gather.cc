// Estimates irradiance from photons: Cumulus builds a KD-tree of where they landed and finds the nearest of
// each place that asks. Tree and answers stay on the server until the end; only the answers come back.
#include <cumulus/client.h>
#include <cumulus/kd_tree.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kPhotons = 1'000'000;
constexpr std::int64_t kPlaces = 1000;
constexpr int kNearest = 128;
constexpr double kPi = 3.14159265358979323846;

/// Irradiance of a floor that is one unit wide and deep, and repeats.
double irradiance(double x) { return 1 + 0.5 * std::sin(2 * kPi * x); }

struct Photons {
  std::vector<float> positions;  // [kPhotons, 2]
  std::vector<float> powers;
};

/// Photons that land evenly, some with more power than others, so that they make up the irradiance above.
Photons trace_photons() {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform;
  Photons photons;
  for (std::int64_t i = 0; i < kPhotons; ++i) {
    const float x = uniform(random);
    photons.positions.push_back(x);
    photons.positions.push_back(uniform(random));
    photons.powers.push_back(static_cast<float>(irradiance(x) / kPhotons));
  }
  return photons;
}

std::vector<float> choose_places() {
  std::vector<float> places;
  for (std::int64_t i = 0; i < kPlaces; ++i) {
    places.push_back(static_cast<float>(i) / kPlaces);
    places.push_back(0.5F);
  }
  return places;
}

struct Neighbors {
  cumulus::Array indices;
  cumulus::Array squared_distances;
};

absl::StatusOr<Neighbors> gather(const std::string& server, const Photons& photons,
                                 const std::vector<float>& places) {
  absl::StatusOr<cumulus::Client> client = cumulus::Client::connect(server);
  if (!client.ok()) return client.status();
  absl::StatusOr<cumulus::Session> session = client->create_session();
  if (!session.ok()) return session.status();
  absl::StatusOr<cumulus::Buffer> positions = session->upload({photons.positions, {kPhotons, 2}});
  if (!positions.ok()) return positions.status();
  absl::StatusOr<cumulus::Result> tree = session->run(cumulus::build_kd_tree(*positions));
  if (!tree.ok()) return tree.status();
  const cumulus::KdTree handles{*tree->buffer("points"), *tree->buffer("idx_array"),
                                *tree->buffer("node_data"), *tree->buffer("node_bounds")};
  cumulus::NeighborOptions options;
  options.squared = true;
  options.period = {1, 1};
  const cumulus::ArrayView asked(places, {kPlaces, 2});
  absl::StatusOr<cumulus::Result> found =
      session->run(cumulus::find_nearest(handles, asked, kNearest, options));
  if (!found.ok()) return found.status();
  absl::StatusOr<cumulus::Array> indices = found->fetch("indices");
  if (!indices.ok()) return indices.status();
  absl::StatusOr<cumulus::Array> distances = found->fetch("distances");
  if (!distances.ok()) return distances.status();
  return Neighbors{*std::move(indices), *std::move(distances)};
}

/// The root mean square of the relative error of the estimates at all places: the power of all nearest
/// photons but the last, over the disc up to that one.
double relative_error(const Photons& photons, const std::vector<float>& places,
                      std::span<const std::int64_t> indices, std::span<const float> squared_distances) {
  double sum = 0;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    const std::size_t last = (place + 1) * kNearest - 1;
    double power = 0;
    for (std::size_t i = place * kNearest; i < last; ++i)
      power += photons.powers[static_cast<std::size_t>(indices[i])];
    const double estimate = power / (kPi * static_cast<double>(squared_distances[last]));
    const double error = estimate / irradiance(places[2 * place]) - 1;
    sum += error * error;
  }
  return std::sqrt(sum / kPlaces);
}

}  // namespace

int main(int argc, char** argv) {
  const Photons photons = trace_photons();
  const std::vector<float> places = choose_places();
  const absl::StatusOr<Neighbors> found = gather(argc > 1 ? argv[1] : "127.0.0.1:50651", photons, places);
  if (!found.ok()) {
    std::cerr << found.status().message() << '\n';
    return 1;
  }
  const auto indices = found->indices.values<std::int64_t>();
  const auto distances = found->squared_distances.values<float>();
  if (!indices.ok() || !distances.ok()) return 1;
  std::cout << kPhotons << " photons, the nearest " << kNearest << " of " << kPlaces
            << " places: relative error of the irradiance "
            << relative_error(photons, places, *indices, *distances) << '\n';
  return 0;
}
