#include "cli/commands/kd_tree/query.h"

#include <absl/strings/str_cat.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/checks.h"
#include "cli/app/refusal.h"
#include "cli/commands/kd_tree/tree_file.h"
#include "cli/files/npz.h"
#include "cli/files/points.h"
#include "cumulus/errors.h"
#include "cumulus/kd_tree.h"

namespace cumulus::cli {
namespace {

struct QueryOptions {
  std::string tree;
  std::string queries;
  std::string output;
  int nearest = 0;  // 0: counts or lists
  bool lists = false;
  double radius = -1;  // less than 0: none
  std::string radii;   // a file; empty: none
  bool squared = false;
  std::vector<double> period;

  bool has_radius() const { return radius >= 0 || !radii.empty(); }
};

/// The file of --radii, if there is one, as the trees of files have their numbers: float64.
absl::StatusOr<std::optional<Array>> radii_of(const QueryOptions& options, std::int64_t queries) {
  if (options.radii.empty()) return std::optional<Array>();
  absl::StatusOr<Array> radii = read_radii(options.radii, queries);
  if (!radii.ok()) return radii.status();
  return std::optional<Array>(*std::move(radii));
}

NeighborOptions neighbor_options(const QueryOptions& options, const std::optional<Buffer>& radii) {
  NeighborOptions neighbors;
  if (options.radius >= 0) neighbors.radius = options.radius;
  if (radii) neighbors.radii = *radii;
  neighbors.squared = options.squared;
  neighbors.period = options.period;
  return neighbors;
}

/// A buffer lives as long as what is returned.
absl::StatusOr<std::optional<Buffer>> upload_radii(Job& job, const Session& session,
                                                   const std::optional<Array>& radii) {
  if (!radii) return std::optional<Buffer>();
  absl::StatusOr<Buffer> uploaded = job.upload(session, radii->view());
  if (!uploaded.ok()) return uploaded.status();
  return std::optional<Buffer>(*std::move(uploaded));
}

/// The arrays that make up a tree, uploaded.
absl::StatusOr<ResidentFile> load_tree(Job& job, const std::string& path) {
  job.begin_read();
  absl::StatusOr<KdTreeFile> tree = read_kd_tree(path);
  if (!tree.ok()) return tree.status();
  absl::StatusOr<Array> ordered = tree->ordered_points();
  if (!ordered.ok()) return ordered.status();
  absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  ResidentFile loaded{std::make_shared<const Session>(*std::move(session)), {}};
  for (Array* array : {&*ordered, &tree->idx_array, &tree->node_data, &tree->node_bounds}) {
    absl::StatusOr<Buffer> uploaded = job.upload(*loaded.session, std::move(*array));
    if (!uploaded.ok()) return uploaded.status();
    loaded.buffers.push_back(*std::move(uploaded));
  }
  return loaded;
}

/// Lists get the room that their counts ask for.
absl::StatusOr<Result> list_all(Job& job, const Session& session, const KdTree& tree, const Buffer& queries,
                                const NeighborOptions& how) {
  const absl::StatusOr<Result> counted = job.run(session, "count", count_neighbors(tree, queries, how));
  if (!counted.ok()) return counted.status();
  const absl::StatusOr<Array> counts = job.download(session, *counted, "counts");
  if (!counts.ok()) return counts.status();
  const absl::StatusOr<std::span<const std::int64_t>> numbers = counts->values<std::int64_t>();
  if (!numbers.ok()) return numbers.status();
  const std::int64_t all = std::accumulate(numbers->begin(), numbers->end(), std::int64_t{0});
  return job.run(session, "query", list_neighbors(tree, queries, all, how));
}

absl::StatusOr<Result> ask(Job& job, const Session& session, const QueryOptions& options, const KdTree& tree,
                           const Buffer& queries, const NeighborOptions& how) {
  if (options.lists) return list_all(job, session, tree, queries, how);
  return job.run(session, "query",
                 options.nearest > 0 ? find_nearest(tree, queries, options.nearest, how)
                                     : count_neighbors(tree, queries, how));
}

absl::Status save_results(Job& job, const Session& session, const Result& found, const std::string& path) {
  std::vector<std::pair<std::string, Array>> results;
  for (const std::string& name : found.names()) {
    absl::StatusOr<Array> downloaded = job.download(session, found, name);
    if (!downloaded.ok()) return downloaded.status();
    results.emplace_back(name, *std::move(downloaded));
  }
  job.stages().begin("write");
  std::vector<std::pair<std::string, ArrayView>> views;
  for (const auto& [name, array] : results) views.emplace_back(name, array.view());
  if (absl::Status written = write_npz(path, views); !written.ok()) return written;
  job.stages().end();
  return absl::OkStatus();
}

/// The files that the fields of FindNeighbors come from. The others are called as their options are.
std::vector<FieldName> fields_of(const QueryOptions& options) {
  return {{"tree.points", options.tree},    {"tree.idx_array", options.tree},
          {"tree.node_data", options.tree}, {"tree.node_bounds", options.tree},
          {"queries", options.queries},     {"radii", "--radii " + options.radii}};
}

/// Of a point or a query that lies outside of a dimension that closes on itself.
std::string outside_period(const QueryOptions& options, std::map<std::string, std::string>& facts) {
  const std::string& dimension = facts["dimension"];
  const std::string range = absl::StrCat(" outside of [0, ", options.period[std::stoul(dimension)],
                                         "[, the --period of dimension ", dimension);
  if (facts.contains("query"))
    return absl::StrCat(options.queries, ": query ", facts["query"], " lies", range);
  return absl::StrCat(options.tree, ": has points", range, "; bring them into it before kd-tree build");
}

absl::Status explain(const absl::Status& refusal, const QueryOptions& options) {
  const std::string reason = error_reason(refusal);
  std::map<std::string, std::string> facts = error_metadata(refusal);
  if (reason == "OUTSIDE_PERIOD") return absl::FailedPreconditionError(outside_period(options, facts));
  if (reason == "INVALID_RADIUS") {
    return absl::FailedPreconditionError(absl::StrCat("--radii ", options.radii, ": query ", facts["query"],
                                                      ": the radius is NaN or negative; 0 or more is right"));
  }
  if (reason == "NAN_COORDINATE") {
    return absl::FailedPreconditionError(absl::StrCat(options.queries, ": query ", facts["query"],
                                                      ", dimension ", facts["dimension"], " is NaN"));
  }
  return name_fields(refusal, fields_of(options));
}

absl::Status run_query(Job& job, const QueryOptions& options) {
  bool loads = false;
  const auto tree = job.resident(options.tree, [&] {
    loads = true;
    return load_tree(job, options.tree);
  });
  if (!tree.ok()) return tree.status();
  const std::vector<Buffer>& arrays = (*tree)->buffers;
  const Session& session = *(*tree)->session;
  const Shape& points = arrays[0].shape();
  job.begin_read();
  absl::StatusOr<Array> queries = read_points(options.queries);
  if (queries.ok()) queries = to_float64(*std::move(queries));
  if (!queries.ok()) return queries.status();
  if (queries->shape()[1] != points[1]) {
    return absl::InvalidArgumentError(absl::StrCat(options.queries, ": its points have ", queries->shape()[1],
                                                   " dimensions; ", points[1],
                                                   ", as those of the tree, are right"));
  }
  const absl::StatusOr<std::optional<Array>> radii = radii_of(options, queries->shape()[0]);
  if (!radii.ok()) return radii.status();
  const absl::StatusOr<Buffer> asked = job.upload(session, queries->view());
  if (!asked.ok()) return asked.status();
  const KdTree handles{arrays[0], arrays[1], arrays[2], arrays[3]};
  const absl::StatusOr<std::optional<Buffer>> own_radii = upload_radii(job, session, *radii);
  if (!own_radii.ok()) return own_radii.status();
  const auto found = ask(job, session, options, handles, *asked, neighbor_options(options, *own_radii));
  if (!found.ok()) return explain(found.status(), options);
  if (absl::Status saved = save_results(job, session, *found, options.output); !saved.ok()) return saved;

  Report& report = job.report();
  report.add("command", "kd-tree query");
  report.add("tree", options.tree);
  report.add("points", points[0]);
  report.add("tree_was_resident", !loads);
  report.add("queries", queries->shape()[0]);
  report.add("arrays", found->names());
  report.add("output", options.output);
  job.describe_run();
  return absl::OkStatus();
}

void require_a_question(const QueryOptions& options) {
  if (options.lists && (!options.has_radius() || options.nearest > 0)) {
    throw CLI::ValidationError(
        "--lists", "lists are of all points within a radius: --radius is right, or --radii; -k is not");
  }
  const bool counts = options.nearest == 0 && options.has_radius() && !options.lists;
  if (counts && options.squared)
    throw CLI::ValidationError("--squared", "is of distances: give -k or --lists, or leave it out");
  if (options.nearest > 0 || options.has_radius()) return;
  throw CLI::ValidationError(
      "kd-tree query",
      "nothing to ask: give -k for the nearest points, --radius (or --radii) to count those within it (to "
      "list them with --lists), or both for the nearest within it");
}

}  // namespace

void add_kd_tree_query(CommandLine& line, CLI::App& group) {
  const auto asked = std::make_shared<QueryOptions>();
  CLI::App& query =
      line.add(group, "query", "Find the nearest points of a tree, or count or list those within a radius",
               [asked](Job& job) { return run_query(job, *asked); });
  query.add_option("tree", asked->tree, "Tree (.npz), of kd-tree build")->required()->type_name("TREE");
  query.add_option("queries", asked->queries, "Points to ask for (.ply, .npy, .npz)")
      ->required()
      ->type_name("QUERIES");
  query
      .add_option("-k,--nearest", asked->nearest,
                  "The so many nearest points, at most 128: indices and distances")
      ->check(whole_number_within(1, 128));
  CLI::Option* radius = query
                            .add_option("--radius", asked->radius,
                                        "Only points no farther than this; without -k: how many there are")
                            ->check(number_within(0));
  query
      .add_option("--radii", asked->radii,
                  "Likewise, a radius for each query: float32 or float64 [queries] (.npy)")
      ->excludes(radius)
      ->type_name("RADII.npy");
  query.add_flag("--lists", asked->lists,
                 "All points within the radius: query i's are elements offsets[i] to offsets[i+1]-1 of "
                 "indices and distances");
  query.add_flag("--squared", asked->squared, "Write squares of distances");
  constexpr std::size_t kMostAxes = 16;
  add_list(query, "--period", asked->period, kMostAxes, number_within(0),
           "Length of each axis that closes on itself, 0 for those that do not")
      .type_name("L,L");
  line.add_output(query, "-o,--output", asked->output,
                  "Arrays to write: indices and distances, counts, or offsets, indices and distances",
                  OutputFormat::kNpz)
      .required()
      ->type_name("OUT.npz");
  query.parse_complete_callback([asked] { require_a_question(*asked); });
}

}  // namespace cumulus::cli
