#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/checks.h"
#include "cli/app/command_line.h"
#include "cli/app/refusal.h"
#include "cli/commands/kd_tree/query.h"
#include "cli/commands/kd_tree/tree_file.h"
#include "cli/files/npz.h"
#include "cli/files/points.h"
#include "cumulus/errors.h"
#include "cumulus/kd_tree.h"

namespace cumulus::cli {
namespace {

const std::map<std::string, KdTreeSplit> kSplits = {{"widest-spread", KdTreeSplit::kWidestSpread},
                                                    {"round-robin", KdTreeSplit::kRoundRobin},
                                                    {"midpoint", KdTreeSplit::kMidpoint}};

const std::map<std::string, KdTreeMedians> kMedians = {{"exact", KdTreeMedians::kExact},
                                                       {"sampled", KdTreeMedians::kSampled}};

struct BuildOptions {
  std::string input;
  std::string output;
  KdTreeOptions tree;
  bool left_balanced = false;
};

void describe_tree(const KdTreeFile& tree, Report& report) {
  report.add("points", tree.points());
  report.add("dimensions", tree.dimensions());
  report.add("leaf_size", tree.leaf_size);
  report.add("levels", tree.levels());
  report.add("nodes", tree.nodes());
}

absl::StatusOr<KdTreeFile> download_tree(Job& job, const Session& session, const Result& built,
                                         Array points) {
  KdTreeFile tree;
  for (const auto& [name, array] :
       {std::pair("idx_array", &tree.idx_array), std::pair("node_data", &tree.node_data),
        std::pair("node_bounds", &tree.node_bounds)}) {
    absl::StatusOr<Array> downloaded = job.download(session, built, name);
    if (!downloaded.ok()) return downloaded.status();
    *array = *std::move(downloaded);
  }
  for (Array* numbers : {&points, &tree.node_bounds}) {
    absl::StatusOr<Array> wide = to_float64(std::move(*numbers));
    if (!wide.ok()) return wide.status();
    *numbers = *std::move(wide);
  }
  tree.data = std::move(points);
  return tree;
}

/// What both layouts' commands say.
void describe_build(Job& job, const BuildOptions& options) {
  job.report().add("output", options.output);
  job.describe_run();
}

absl::Status explain(const absl::Status& refusal, const BuildOptions& options) {
  if (error_reason(refusal) != "NAN_COORDINATE")
    return name_fields(refusal, {{"points", options.input}, {"medians", "--medians"}});
  std::map<std::string, std::string> facts = error_metadata(refusal);
  return absl::FailedPreconditionError(
      absl::StrCat(options.input, ": point ", facts["point"], ", dimension ", facts["dimension"],
                   " is NaN, which has no place in an order; leave such points out"));
}

absl::Status export_left_balanced(Job& job, const BuildOptions& options, const Session& session,
                                  const Buffer& points) {
  const auto arranged = job.run(session, "arrange", arrange_left_balanced_kd_tree(points));
  if (!arranged.ok()) return explain(arranged.status(), options);
  const absl::StatusOr<Array> nodes = job.download(session, *arranged, "points");
  if (!nodes.ok()) return nodes.status();
  const absl::StatusOr<Array> order = job.download(session, *arranged, "idx_array");
  if (!order.ok()) return order.status();
  job.stages().begin("write");
  const absl::Status written =
      write_npz(options.output, {{"points", nodes->view()}, {"idx_array", order->view()}});
  if (!written.ok()) return written;
  job.stages().end();
  job.report().add("command", "kd-tree build");
  job.report().add("input", options.input);
  job.report().add("layout", "left-balanced");
  job.report().add("points", nodes->shape()[0]);
  job.report().add("dimensions", nodes->shape()[1]);
  describe_build(job, options);
  return absl::OkStatus();
}

absl::Status run_build(Job& job, const BuildOptions& options) {
  job.begin_read();
  absl::StatusOr<Array> points = read_points(options.input);
  if (!points.ok()) return points.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> uploaded = job.upload(*session, points->view());
  if (!uploaded.ok()) return uploaded.status();
  if (options.left_balanced) return export_left_balanced(job, options, *session, *uploaded);
  const auto built = job.run(*session, "build", build_kd_tree(*uploaded, options.tree));
  if (!built.ok()) return explain(built.status(), options);
  absl::StatusOr<KdTreeFile> tree = download_tree(job, *session, *built, *std::move(points));
  if (!tree.ok()) return tree.status();
  tree->leaf_size = options.tree.leaf_size;
  job.stages().begin("write");
  if (absl::Status written = write_kd_tree(options.output, *tree); !written.ok()) return written;
  job.stages().end();

  Report& report = job.report();
  report.add("command", "kd-tree build");
  report.add("input", options.input);
  describe_tree(*tree, report);
  describe_build(job, options);
  return absl::OkStatus();
}

/// The least and greatest number of points of a leaf.
std::pair<std::int64_t, std::int64_t> leaf_range(const KdTreeFile& tree) {
  std::int64_t least = tree.points();
  std::int64_t greatest = 0;
  const std::byte* nodes = tree.node_data.bytes().data();
  for (std::int64_t node = tree.nodes() / 2; node < tree.nodes(); ++node) {
    std::int64_t range[2];
    std::memcpy(range, nodes + node * tree.node_data.shape()[1], sizeof(range));
    least = std::min(least, range[1] - range[0]);
    greatest = std::max(greatest, range[1] - range[0]);
  }
  return {least, greatest};
}

absl::Status run_info(Job& job, const std::string& path) {
  job.stages().begin("read");
  const absl::StatusOr<KdTreeFile> tree = read_kd_tree(path);
  if (!tree.ok()) return tree.status();
  job.stages().end();
  Report& report = job.report();
  report.add("command", "kd-tree info");
  report.add("input", path);
  describe_tree(*tree, report);
  const auto [least, greatest] = leaf_range(*tree);
  report.add("smallest_leaf", least);
  report.add("largest_leaf", greatest);
  const auto* bounds = reinterpret_cast<const double*>(tree->node_bounds.bytes().data());
  std::vector<std::string> extents;
  for (std::int64_t axis = 0; axis < tree->dimensions(); ++axis) {
    extents.push_back(absl::StrCat(bounds[axis], " to ", bounds[tree->nodes() * tree->dimensions() + axis]));
  }
  report.add("bounds", std::move(extents));
  return absl::OkStatus();
}

}  // namespace

void add_kd_tree_commands(CommandLine& line) {
  line.add_bench_row({"kd-tree", bench_points, [](const Buffer& points) { return build_kd_tree(points); }});
  CLI::App& group = line.add_group("kd-tree", "Build KD-trees of points and ask them for neighbours");

  const auto built = std::make_shared<BuildOptions>();
  CLI::App& build = line.add(group, "build", "Build the KD-tree of a cloud of points",
                             [built](Job& job) { return run_build(job, *built); });
  build.add_option("input", built->input, "Points (.ply, .npy, .npz)")->required()->type_name("POINTS");
  CLI::Option* leaf_size = build
                               .add_option("--leaf-size", built->tree.leaf_size,
                                           "Leaves have 1 to 2 times so many points (default 20)")
                               ->check(whole_number_within(1, std::numeric_limits<std::int32_t>::max()));
  CLI::Option* split =
      build.add_option("--split", built->tree.split, "widest-spread (default), round-robin or midpoint")
          ->transform(one_of(kSplits))
          ->type_name("NAME");
  CLI::Option* medians =
      build
          .add_option("--medians", built->tree.medians,
                      "exact (default), or sampled: a faster build of a tree that is searched once")
          ->transform(one_of(kMedians))
          ->type_name("NAME");
  build
      .add_flag("--left-balanced", built->left_balanced,
                "Write the implicit left-balanced layout instead: points and idx_array, node after node")
      ->excludes(leaf_size)
      ->excludes(split)
      ->excludes(medians);
  line.add_output(build, "-o,--output", built->output, "Tree to write, which scikit-learn loads too",
                  OutputFormat::kNpz)
      .required()
      ->type_name("OUT.npz");

  add_kd_tree_query(line, group);

  const auto input = std::make_shared<std::string>();
  CLI::App& info =
      line.add(group, "info", "Say what a tree is", [input](Job& job) { return run_info(job, *input); });
  info.add_option("tree", *input, "Tree (.npz), of kd-tree build")->required()->type_name("TREE");
}

}  // namespace cumulus::cli
