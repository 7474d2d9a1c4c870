#include <cumulus/bracket_match.h>
#include <cumulus/client.h>
#include <cumulus/coco_masks.h>
#include <cumulus/kd_tree.h>
#include <cumulus/recursive_filter.h>
#include <cumulus/run_length_container.h>
#include <cumulus/sampling.h>
#include <cumulus/sampling_table.h>
#include <cumulus/summed_area_table.h>

#include <iostream>
#include <vector>

// Every kind of options with one member given by name, and nothing said of the others.
bool names_one_option_of_each() {
  const std::vector<float> numbers(3);
  const std::vector<std::uint8_t> bytes(3);
  const cumulus::ArrayView array(numbers);
  const cumulus::KdTree tree{array, array, array, array};
  const std::vector<cumulus::Operation> operations = {
      cumulus::build_sampling_table(array, {.mis_compensation = true}),
      cumulus::draw_samples(cumulus::ArrayView(bytes), {.count = 4}),
      cumulus::build_summed_area_table(array, {.squares = true}),
      cumulus::sum_rectangles(array, array, {.refuse_outside = true}),
      cumulus::filter_box(array, {.radius = 2}),
      cumulus::apply_recursive_filter(
          array, {.y = cumulus::AxisKernel{.kernel = cumulus::GaussianKernel{.sigma = 2}},
                  .x = cumulus::AxisKernel{.kernel = cumulus::FeedbackKernel{.causal = {0.5}}}}),
      cumulus::encode_run_lengths(array, {.wide_lengths = true}),
      cumulus::decode_run_lengths(array, array, {.max_output_bytes = 12}),
      cumulus::build_kd_tree(array, {.leaf_size = 10}),
      cumulus::find_nearest(tree, array, 1, {.radius = 1.0}),
      cumulus::match_brackets(cumulus::ArrayView(bytes), {.lenient = true})};
  const cumulus::RunOptions run{.call = {.timeout = absl::Seconds(1)}};
  const cumulus::SessionOptions session{.quota_bytes = 100};
  const cumulus::UploadOptions upload{.evictable = true};
  const cumulus::DownloadOptions download{.call = {.request_id = "frame 1"}};
  return !operations.empty() && run.call.timeout && session.quota_bytes > 0 && upload.evictable &&
         !download.call.request_id.empty();
}

// Nothing listens here: what is shown is that the installed library compiles, links and runs.
int main() {
  const auto client =
      cumulus::Client::connect("unix:/nonexistent", {.connect_timeout = absl::Milliseconds(200)});
  std::cout << client.status() << '\n';
  return names_one_option_of_each() && absl::IsUnavailable(client.status()) ? 0 : 1;
}
