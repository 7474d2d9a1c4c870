// Estimates irradiance from photons: Cumulus builds a KD-tree of where they landed, and sums the powers of
// the nearest to each place that asks. The tree stays on the server; a sum and a distance for each place come
// back.
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

struct Gathered {
  cumulus::Array powers;             // of the nearest photons together
  cumulus::Array squared_distances;  // of the last of them
};

absl::StatusOr<Gathered> gather(const std::string& server, const Photons& photons,
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
  absl::StatusOr<cumulus::Buffer> powers = session->upload({photons.powers, {kPhotons}});
  if (!powers.ok()) return powers.status();
  absl::StatusOr<cumulus::Result> found =
      session->run(cumulus::sum_nearest(handles, asked, *powers, kNearest, options));
  if (!found.ok()) return found.status();
  absl::StatusOr<cumulus::Array> sums = found->fetch("sums");
  if (!sums.ok()) return sums.status();
  absl::StatusOr<cumulus::Array> distances = found->fetch("distances");
  if (!distances.ok()) return distances.status();
  return Gathered{*std::move(sums), *std::move(distances)};
}

/// The root mean square of the relative error of the estimates at all places: the power of the nearest
/// photons over the disc up to the last, which lies on its rim and so does not count.
double relative_error(const std::vector<float>& places, std::span<const float> powers,
                      std::span<const float> squared_distances) {
  double sum = 0;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    const double power = static_cast<double>(powers[place]) * (kNearest - 1) / kNearest;
    const double estimate = power / (kPi * static_cast<double>(squared_distances[place]));
    const double error = estimate / irradiance(places[2 * place]) - 1;
    sum += error * error;
  }
  return std::sqrt(sum / kPlaces);
}

}  // namespace

int main(int argc, char** argv) {
  const Photons photons = trace_photons();
  const std::vector<float> places = choose_places();
  const absl::StatusOr<Gathered> found = gather(argc > 1 ? argv[1] : "127.0.0.1:50651", photons, places);
  if (!found.ok()) {
    std::cerr << found.status().message() << '\n';
    return 1;
  }
  const auto powers = found->powers.values<float>();
  const auto distances = found->squared_distances.values<float>();
  if (!powers.ok() || !distances.ok()) return 1;
  std::cout << kPhotons << " photons, the nearest " << kNearest << " of " << kPlaces
            << " places: relative error of the irradiance " << relative_error(places, *powers, *distances)
            << '\n';
  return 0;
}
