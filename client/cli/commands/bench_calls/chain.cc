#include "cli/commands/bench_calls/chain.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/bench_rows.h"
#include "cli/commands/bench_calls/limit_rows.h"
#include "cumulus/pipeline.h"
#include "cumulus/recursive_filter.h"
#include "cumulus/sampling_table.h"
#include "cumulus/summed_area_table.h"
#include "proto/steady_time.h"

namespace cumulus::cli {
namespace {

constexpr std::int64_t kHeight = 128;
constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kSamples = 1024;

/// What both ways leave, and how long their kernels took.
struct Kept {
  Buffer samples;
  Buffer sums;
  absl::Duration kernels;
};

class Chain {
 public:
  Chain(Job& job, const Session& session, const Buffer& map) : job_(job), session_(session), map_(map) {}

  absl::StatusOr<Kept> one_call() const {
    Pipeline pipeline;
    const auto blurred = pipeline.add(blur());
    const auto table = pipeline.add(build_sampling_table(blurred["image"]));
    const auto drawn = pipeline.add(draw_samples(table["table"], {.count = kSamples}));
    const auto boxed = pipeline.add(filter_box(blurred["image"], {.radius = 4}));
    const auto summed = pipeline.add(build_summed_area_table(boxed["image"]));
    pipeline.keep(drawn["position"]);
    pipeline.keep(summed["sums"]);
    absl::StatusOr<Result> result = run(pipeline);
    if (!result.ok()) return result.status();
    const absl::Duration kernels = result->timings().compute;
    return take(*result, *result, kernels);
  }

  absl::StatusOr<Kept> five_calls() const {
    absl::Duration kernels;
    const absl::StatusOr<Result> blurred = run(blur(), kernels);
    if (!blurred.ok()) return blurred.status();
    const Buffer& image = *blurred->buffer("image");
    const absl::StatusOr<Result> table = run(build_sampling_table(image), kernels);
    if (!table.ok()) return table.status();
    absl::StatusOr<Result> drawn = run(draw_samples(*table->buffer("table"), {.count = kSamples}), kernels);
    if (!drawn.ok()) return drawn.status();
    const absl::StatusOr<Result> boxed = run(filter_box(image, {.radius = 4}), kernels);
    if (!boxed.ok()) return boxed.status();
    absl::StatusOr<Result> summed = run(build_summed_area_table(*boxed->buffer("image")), kernels);
    if (!summed.ok()) return summed.status();
    return take(*drawn, *summed, kernels);
  }

  absl::StatusOr<absl::Duration> one_filter() const {
    absl::Duration kernels;
    const absl::StatusOr<Result> filtered = run(filter_box(map_, {.radius = 4}), kernels);
    if (!filtered.ok()) return filtered.status();
    return kernels;
  }

 private:
  Operation blur() const {
    return apply_recursive_filter(map_,
                                  {.y = AxisKernel{GaussianKernel{3}}, .x = AxisKernel{GaussianKernel{3}}});
  }
  absl::StatusOr<Result> run(const Operation& operation) const {
    return job_.accept(session_.run(operation, job_.run()));
  }
  absl::StatusOr<Result> run(const Operation& operation, absl::Duration& kernels) const {
    absl::StatusOr<Result> result = run(operation);
    if (result.ok()) kernels += result->timings().compute;
    return result;
  }
  static absl::StatusOr<Kept> take(Result& drawn, Result& summed, absl::Duration kernels) {
    absl::StatusOr<Buffer> samples = drawn.take_buffer("position");
    if (!samples.ok()) return samples.status();
    absl::StatusOr<Buffer> sums = summed.take_buffer("sums");
    if (!sums.ok()) return sums.status();
    return Kept{*std::move(samples), *std::move(sums), kernels};
  }

  Job& job_;
  const Session& session_;
  const Buffer& map_;
};

struct Subject {
  ChainTimes::Subject& median;
  std::function<absl::StatusOr<absl::Duration>()> run;  // answers the time of its kernels
  std::vector<absl::Duration> whole = {};
  std::vector<absl::Duration> kernels = {};
};

absl::Status take_turns(std::vector<Subject>& subjects, int rounds) {
  for (int round = -rounds / 10 - 1; round < rounds; ++round) {  // those below 0 warm up
    for (Subject& subject : subjects) {
      const absl::Time start = steady_now();
      const absl::StatusOr<absl::Duration> kernels = subject.run();
      if (!kernels.ok()) return kernels.status();
      if (round < 0) continue;
      subject.whole.push_back(steady_now() - start);
      subject.kernels.push_back(*kernels);
    }
  }
  for (Subject& subject : subjects) subject.median = {median(subject.whole), median(subject.kernels)};
  return absl::OkStatus();
}

absl::Status require_same(const Session& session, const Buffer& one, const Buffer& other) {
  const absl::StatusOr<Array> first = session.download(one);
  if (!first.ok()) return first.status();
  const absl::StatusOr<Array> second = session.download(other);
  if (!second.ok()) return second.status();
  if (std::ranges::equal(first->bytes(), second->bytes())) return absl::OkStatus();
  return absl::InternalError("five operations have other results as one call than as five");
}

absl::StatusOr<absl::Duration> kernels_of(const absl::StatusOr<Kept>& kept) {
  if (!kept.ok()) return kept.status();
  return kept->kernels;
}

}  // namespace

absl::StatusOr<ChainTimes> measure_chain(Job& job, const Session& session, int rounds) {
  const absl::StatusOr<Array> texels = bench_floats({kHeight, kWidth});
  if (!texels.ok()) return texels.status();
  const absl::StatusOr<Buffer> map = job.upload(session, texels->view());
  if (!map.ok()) return map.status();
  const Chain chain(job, session, *map);
  ChainTimes times;
  std::vector<Subject> subjects = {{times.one_call, [&] { return kernels_of(chain.one_call()); }},
                                   {times.five_calls, [&] { return kernels_of(chain.five_calls()); }},
                                   {times.one_filter, [&] { return chain.one_filter(); }}};
  if (absl::Status taken = take_turns(subjects, rounds); !taken.ok()) return taken;
  const absl::StatusOr<Kept> one = chain.one_call();
  if (!one.ok()) return one.status();
  const absl::StatusOr<Kept> five = chain.five_calls();
  if (!five.ok()) return five.status();
  absl::Status same = require_same(session, one->samples, five->samples);
  if (same.ok()) same = require_same(session, one->sums, five->sums);
  if (!same.ok()) return same;
  return times;
}

}  // namespace cumulus::cli
