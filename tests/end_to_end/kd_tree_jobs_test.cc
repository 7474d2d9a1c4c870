// KD-trees from the command line, and the example that gathers photons.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/kd_tree.h"
#include "tests/end_to_end/json.h"
#include "tests/end_to_end/program.h"

namespace cumulus::testing {
namespace {

/// An ASCII PLY of `count` points of the unit cube, which it returns.
std::vector<double> write_ply(const std::string& path, int count) {
  std::ofstream file(path);
  file << "ply\nformat ascii 1.0\nelement vertex " << count
       << "\nproperty float x\nproperty float y\nproperty float z\nend_header\n";
  std::mt19937 random(1);
  std::vector<double> points(static_cast<std::size_t>(3 * count));
  for (double& x : points) x = static_cast<double>(random() % 4096) / 4096;
  for (std::size_t i = 0; i < points.size(); ++i) file << points[i] << (i % 3 == 2 ? '\n' : ' ');
  return points;
}

/// A .npy file of float64 [count].
void write_npy(const std::string& path, const std::vector<double>& numbers) {
  std::string header =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(numbers.size()) + ",), }";
  header.resize(117, ' ');
  std::ofstream(path, std::ios::binary)
      << "\x93NUMPY\x01" << '\0' << '\x76' << '\0' << header << '\n'
      << std::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
}

/// The first array of a .npz file, of int64.
std::vector<std::int64_t> first_array(const std::string& path, std::size_t count) {
  const std::string bytes = read_file(path);
  const std::size_t begin = bytes.find('\n', bytes.find("NUMPY")) + 1;
  std::vector<std::int64_t> numbers(count);
  EXPECT_GE(bytes.size(), begin + count * sizeof(std::int64_t));
  bytes.copy(reinterpret_cast<char*>(numbers.data()), count * sizeof(std::int64_t), begin);
  return numbers;
}

TEST(KdTreeJobs, BuildAskAndDescribeATree) {
  const TemporaryFolder folder;
  write_ply(folder / "cloud.ply", 1000);
  const Ended built = run_cumulus({"--backend", "cpu", "--json", "kd-tree", "build", folder / "cloud.ply",
                                   "--leaf-size", "10", "-o", folder / "tree.npz"});
  ASSERT_EQ(built.exit_code, 0) << built.errors;
  EXPECT_EQ(Json(built.output).number("points"), 1000);
  EXPECT_EQ(Json(built.output).number("nodes"), 127);

  const Ended info = run_cumulus({"--json", "kd-tree", "info", folder / "tree.npz"});
  ASSERT_EQ(info.exit_code, 0) << info.errors;
  EXPECT_EQ(Json(info.output).number("dimensions"), 3);
  EXPECT_EQ(Json(info.output).number("leaf_size"), 10);
  EXPECT_EQ(Json(info.output).number("levels"), 7);
  EXPECT_EQ(Json(info.output).number("smallest_leaf"), 15);
  EXPECT_EQ(Json(info.output).number("largest_leaf"), 16);

  const Ended found = run_cumulus({"--backend", "cpu", "--json", "kd-tree", "query", folder / "tree.npz",
                                   folder / "cloud.ply", "-k", "3", "-o", folder / "found.npz"});
  ASSERT_EQ(found.exit_code, 0) << found.errors;
  EXPECT_EQ(Json(found.output).text("arrays.0"), "indices");
  EXPECT_EQ(Json(found.output).text("arrays.1"), "distances");
  const Ended counted = run_cumulus({"--backend", "cpu", "--json", "kd-tree", "query", folder / "tree.npz",
                                     folder / "cloud.ply", "--radius", "0.1", "-o", folder / "counts.npz"});
  ASSERT_EQ(counted.exit_code, 0) << counted.errors;
  EXPECT_EQ(Json(counted.output).text("arrays.0"), "counts");

  const Ended listed =
      run_cumulus({"--backend", "cpu", "--json", "kd-tree", "query", folder / "tree.npz",
                   folder / "cloud.ply", "--radius", "0.1", "--lists", "-o", folder / "lists.npz"});
  ASSERT_EQ(listed.exit_code, 0) << listed.errors;
  EXPECT_EQ(Json(listed.output).text("arrays.0"), "offsets");
  EXPECT_EQ(Json(listed.output).text("arrays.1"), "indices");
  EXPECT_EQ(Json(listed.output).text("arrays.2"), "distances");

  // The CPU builds the exact tree all the same.
  const Ended sampled =
      run_cumulus({"--backend", "cpu", "--json", "kd-tree", "build", folder / "cloud.ply", "--leaf-size",
                   "10", "--medians", "sampled", "-o", folder / "frame.npz"});
  ASSERT_EQ(sampled.exit_code, 0) << sampled.errors;
  EXPECT_TRUE(read_file(folder / "frame.npz") == read_file(folder / "tree.npz"));

  const Ended arranged = run_cumulus({"--backend", "cpu", "--json", "kd-tree", "build", folder / "cloud.ply",
                                      "--left-balanced", "-o", folder / "layout.npz"});
  ASSERT_EQ(arranged.exit_code, 0) << arranged.errors;
  EXPECT_EQ(Json(arranged.output).text("layout"), "left-balanced");
  EXPECT_EQ(Json(arranged.output).number("points"), 1000);
  const Ended points = run_cumulus({"kd-tree", "info", folder / "points.ply"});
  EXPECT_NE(points.errors.find(
                "points.ply: it is a file of points, of which no tree has been built; a file of 'cumulus "
                "kd-tree build' is right"),
            std::string::npos)
      << points.errors;
  const Ended no_tree = run_cumulus({"kd-tree", "info", folder / "layout.npz"});
  EXPECT_EQ(no_tree.exit_code, 1);
  EXPECT_NE(no_tree.errors.find("it is a left-balanced layout"), std::string::npos) << no_tree.errors;
  EXPECT_EQ(run_cumulus({"kd-tree", "build", folder / "cloud.ply", "--left-balanced", "--leaf-size", "10",
                         "-o", folder / "layout.npz"})
                .exit_code,
            2);

  // A tree's file holds its points, of which the same tree is built again.
  const Ended again = run_cumulus({"--backend", "cpu", "kd-tree", "build", folder / "tree.npz", "--leaf-size",
                                   "10", "-o", folder / "again.npz"});
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_TRUE(read_file(folder / "again.npz") == read_file(folder / "tree.npz"));
}

/// How many of `points` are within a query's own radius of it, found by looking at each.
std::int64_t count_within(const std::vector<double>& points, const double* query, double radius) {
  std::int64_t within = 0;
  for (std::size_t i = 0; i < points.size(); i += 3) {
    double squared = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      squared += (points[i + axis] - query[axis]) * (points[i + axis] - query[axis]);
    }
    if (squared <= radius * radius) ++within;
  }
  return within;
}

TEST(KdTreeJobs, AskWithARadiusForEachQuery) {
  const TemporaryFolder folder;
  const std::vector<double> points = write_ply(folder / "cloud.ply", 500);
  std::vector<double> radii;
  for (int i = 0; i < 500; ++i) radii.push_back(0.0625 * (i % 7));
  write_npy(folder / "radii.npy", radii);
  ASSERT_EQ(
      run_cumulus({"--backend", "cpu", "kd-tree", "build", folder / "cloud.ply", "-o", folder / "t.npz"})
          .exit_code,
      0);
  const auto query = [&](std::vector<std::string> how) {
    std::vector<std::string> words = {
        "--backend",          "cpu", "kd-tree",           "query", folder / "t.npz",
        folder / "cloud.ply", "-o",  folder / "found.npz"};
    words.insert(words.end(), how.begin(), how.end());
    return run_cumulus(words);
  };
  const Ended counted = query({"--radii", folder / "radii.npy"});
  ASSERT_EQ(counted.exit_code, 0) << counted.errors;
  const std::vector<std::int64_t> counts = first_array(folder / "found.npz", radii.size());
  std::int64_t offset = 0;
  const Ended listed = query({"--radii", folder / "radii.npy", "--lists"});
  ASSERT_EQ(listed.exit_code, 0) << listed.errors;
  const std::vector<std::int64_t> offsets = first_array(folder / "found.npz", radii.size() + 1);
  for (std::size_t i = 0; i < radii.size(); ++i) {
    ASSERT_EQ(counts[i], count_within(points, &points[3 * i], radii[i])) << "query " << i;
    offset += counts[i];
    ASSERT_EQ(offsets[i + 1], offset) << "query " << i;
  }
  EXPECT_EQ(query({"--radii", folder / "radii.npy", "-k", "4"}).exit_code, 0);

  EXPECT_EQ(query({"--radii", folder / "radii.npy", "--radius", "1"}).exit_code, 2);
  write_npy(folder / "few.npy", {1, 2, 3});
  const Ended few = query({"--radii", folder / "few.npy"});
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_NE(few.errors.find("[500], one radius for each query, is right"), std::string::npos) << few.errors;
  radii[123] = -1;
  write_npy(folder / "negative.npy", radii);
  const Ended negative = query({"--radii", folder / "negative.npy"});
  EXPECT_EQ(negative.exit_code, 1);
  EXPECT_NE(negative.errors.find("query 123: the radius is NaN or negative"), std::string::npos)
      << negative.errors;
}

TEST(KdTreeJobs, SayWhatIsWrong) {
  const TemporaryFolder folder;
  write_ply(folder / "cloud.ply", 10);
  EXPECT_EQ(run_cumulus({"kd-tree"}).exit_code, 2);
  EXPECT_EQ(run_cumulus({"kd-tree", "build", folder / "cloud.ply"}).exit_code, 2);
  EXPECT_EQ(
      run_cumulus({"kd-tree", "build", folder / "cloud.ply", "--leaf-size", "0", "-o", "x.npz"}).exit_code,
      2);
  EXPECT_EQ(
      run_cumulus({"kd-tree", "build", folder / "cloud.ply", "--split", "random", "-o", "x.npz"}).exit_code,
      2);
  EXPECT_EQ(
      run_cumulus({"kd-tree", "build", folder / "cloud.ply", "--medians", "some", "-o", "x.npz"}).exit_code,
      2);
  EXPECT_EQ(run_cumulus({"kd-tree", "build", folder / "cloud.ply", "--medians", "sampled", "--left-balanced",
                         "-o", "x.npz"})
                .exit_code,
            2);
  const Ended both = run_cumulus({"--backend", "cpu", "kd-tree", "build", folder / "cloud.ply", "--medians",
                                  "sampled", "--split", "midpoint", "-o", "x.npz"});
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_NE(both.errors.find("--medians: is MEDIANS_SAMPLED; with MIDPOINT"), std::string::npos)
      << both.errors;
  const Ended nothing = run_cumulus({"kd-tree", "query", "x.npz", folder / "cloud.ply", "-o", "y.npz"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_NE(nothing.errors.find("nothing to ask"), std::string::npos) << nothing.errors;
  EXPECT_EQ(run_cumulus({"kd-tree", "query", "x.npz", "q.npy", "-k", "129", "-o", "y.npz"}).exit_code, 2);
  for (const auto& [option, value] : {std::pair("-k", "3"), std::pair("--period", "1")}) {
    const Ended lists =
        run_cumulus({"kd-tree", "query", "x.npz", "q.npy", "--lists", option, value, "-o", "y.npz"});
    EXPECT_EQ(lists.exit_code, 2);
    EXPECT_NE(lists.errors.find("--radius is right"), std::string::npos) << lists.errors;
  }
  const Ended missing = run_cumulus({"kd-tree", "info", folder / "nothing.npz"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.errors.find("cannot open"), std::string::npos) << missing.errors;
  std::ofstream(folder / "nan.ply")
      << "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
         "property float z\nend_header\n1 nan 2\n";
  const Ended nan =
      run_cumulus({"--backend", "cpu", "kd-tree", "build", folder / "nan.ply", "-o", folder / "x.npz"});
  EXPECT_EQ(nan.exit_code, 1);
  EXPECT_NE(nan.errors.find("point 0, dimension 1 is NaN"), std::string::npos) << nan.errors;
}

TEST(KdTreeJobs, NameTheFilesAndOptionsThatAreWrong) {
  const TemporaryFolder folder;
  const std::string cloud = folder / "CLOUD.PLY";  // as some programs name it
  write_ply(cloud, 100);
  ASSERT_EQ(run_cumulus({"--backend", "cpu", "kd-tree", "build", cloud, "-o", folder / "t.npz"}).exit_code,
            0);
  const auto query = [&](std::vector<std::string> how, const std::string& places) {
    std::vector<std::string> words = {"--backend", "cpu", "kd-tree", "query", "-o", folder / "found.npz"};
    words.insert(words.end(), how.begin(), how.end());
    words.insert(words.end(), {folder / "t.npz", places});
    return run_cumulus(words);
  };
  const Ended periodic = query({"-k", "2", "--period", "1,1,0"}, cloud);  // which takes no word behind it
  EXPECT_EQ(periodic.exit_code, 0) << periodic.errors;
  const Ended squared = query({"--radius", "1", "--squared"}, cloud);
  EXPECT_EQ(squared.exit_code, 2);
  EXPECT_NE(squared.errors.find("--squared: is of distances"), std::string::npos) << squared.errors;
  const Ended outside = query({"-k", "2", "--period", "0.5,0,0"}, cloud);
  EXPECT_EQ(outside.errors.rfind("cumulus: " + (folder / "t.npz") +
                                     ": has points outside of [0, 0.5[, the --period of dimension 0; bring",
                                 0),
            0U)
      << outside.errors;
  std::ofstream(folder / "nan.ply")
      << "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
         "property float z\nend_header\n1 nan 2\n";
  for (const Ended& nan : {query({"-k", "2"}, folder / "nan.ply"),
                           run_cumulus({"--backend", "cpu", "kd-tree", "build", "--left-balanced",
                                        folder / "nan.ply", "-o", folder / "x.npz"})}) {
    EXPECT_EQ(nan.exit_code, 1);
    EXPECT_EQ(nan.errors.rfind("cumulus: " + (folder / "nan.ply") + ": ", 0), 0U) << nan.errors;
  }
  EXPECT_EQ(run_cumulus({"kd-tree", "build", cloud, "--leaf-size", "3000000000", "-o", "x.npz"}).exit_code,
            2);
}

std::vector<float> random_points(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform;
  std::vector<float> points(static_cast<std::size_t>(3 * count));
  for (float& x : points) x = uniform(random);
  return points;
}

/// Of `count` points from `cloud` on, those within `radius` of `query`: found by looking at each.
std::vector<std::int64_t> points_within(const float* cloud, std::int64_t count, const float* query,
                                        float radius) {
  std::vector<std::int64_t> within;
  for (std::int64_t point = 0; point < count; ++point) {
    float squared = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const float difference = cloud[3 * point + axis] - query[axis];
      squared += difference * difference;
    }
    if (squared <= radius * radius) within.push_back(point);
  }
  return within;
}

TEST(ClientLibrary, BuildsAndAsksThousandsOfTreesAtOnce) {
  const std::int64_t trees = 4000;
  const std::int64_t points = 1000;  // of each
  const std::int64_t asked = 3;      // of each
  const std::vector<float> clouds = random_points(trees * points, 1);
  const std::vector<float> queries = random_points(trees * asked, 2);
  Daemon daemon;
  absl::StatusOr<Client> client = Client::connect(daemon.address());
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<Session> session = client->create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<Buffer> uploaded = session->upload(ArrayView(clouds, {trees, points, 3}));
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  const absl::StatusOr<Result> built = session->run(build_kd_tree(*uploaded));
  ASSERT_TRUE(built.ok()) << built.status();
  const KdTree forest{*built->buffer("points"), *built->buffer("idx_array"), *built->buffer("node_data"),
                      *built->buffer("node_bounds")};
  NeighborOptions options;
  options.radius = 0.1;
  absl::StatusOr<Result> found =
      session->run(list_neighbors(forest, ArrayView(queries, {trees, asked, 3}), 1'000'000, options));
  ASSERT_TRUE(found.ok()) << found.status();
  const absl::StatusOr<Array> offsets = found->fetch("offsets");
  const absl::StatusOr<Array> indices = found->fetch("indices");
  ASSERT_TRUE(offsets.ok() && indices.ok());
  const auto begins = *offsets->values<std::int64_t>();
  const auto listed = *indices->values<std::int64_t>();
  ASSERT_EQ(begins.size(), static_cast<std::size_t>(trees * asked + 1));
  for (std::int64_t number = 0; number < trees * asked; ++number) {
    std::vector<std::int64_t> list(listed.begin() + begins[static_cast<std::size_t>(number)],
                                   listed.begin() + begins[static_cast<std::size_t>(number) + 1]);
    std::sort(list.begin(), list.end());
    ASSERT_TRUE(list == points_within(clouds.data() + number / asked * points * 3, points,
                                      queries.data() + 3 * number, 0.1F))
        << "query " << number;
  }
}

TEST(ClientLibrary, AnswersMillionsOfQueriesInOneRequest) {
  const std::int64_t points = 1000;
  const std::int64_t asked = 2'000'000;
  const std::vector<float> cloud = random_points(points, 1);
  std::vector<float> queries;  // the points themselves, again and again
  queries.reserve(static_cast<std::size_t>(3 * asked));
  for (std::int64_t i = 0; i < asked / points; ++i) queries.insert(queries.end(), cloud.begin(), cloud.end());
  Daemon daemon;
  absl::StatusOr<Client> client = Client::connect(daemon.address());
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<Session> session = client->create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<Result> built = session->run(build_kd_tree(ArrayView(cloud, {points, 3})));
  ASSERT_TRUE(built.ok()) << built.status();
  const KdTree tree{*built->buffer("points"), *built->buffer("idx_array"), *built->buffer("node_data"),
                    *built->buffer("node_bounds")};
  const absl::StatusOr<Buffer> uploaded = session->upload(ArrayView(queries, {asked, 3}));
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  absl::StatusOr<Result> found = session->run(find_nearest(tree, *uploaded, 1));
  ASSERT_TRUE(found.ok()) << found.status();
  const absl::StatusOr<Array> indices = found->fetch("indices");
  ASSERT_TRUE(indices.ok()) << indices.status();
  const auto nearest = *indices->values<std::int64_t>();
  ASSERT_EQ(nearest.size(), static_cast<std::size_t>(asked));
  for (std::int64_t i = 0; i < asked; ++i)
    ASSERT_EQ(nearest[static_cast<std::size_t>(i)], i % points) << "query " << i;
}

TEST(Example, GathersPhotonsToTheErrorThatTheirNumberAllows) {
  Daemon daemon;
  const Ended ended = Program(CUMULUS_EXAMPLE_PHOTON_GATHER, {daemon.address()}).wait();
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  const double error = std::stod(ended.output.substr(ended.output.rfind(' ')));
  // 127 photons: one over the square root of that is 0.089.
  EXPECT_GT(error, 0.07) << ended.output;
  EXPECT_LT(error, 0.11) << ended.output;
}

}  // namespace
}  // namespace cumulus::testing
