#include <absl/time/time.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cli/app/bench_rows.h"
#include "cli/app/checks.h"
#include "cli/app/command_line.h"
#include "cli/commands/bench_calls/compare.h"
#include "cli/commands/bench_calls/echo.h"
#include "cli/commands/bench_calls/limit_starts.h"
#include "cli/commands/bench_calls/limits.h"
#include "proto/steady_time.h"

namespace cumulus::cli {
namespace {

struct Options {
  std::int64_t size = 2048;
  int repeat = 5;
  bool limits = false;
  CompareOptions calls;
};

/// The middle one of `repeat` times that `call` gives.
template <class Call>
absl::StatusOr<absl::Duration> median(int repeat, const Call& call) {
  std::vector<absl::Duration> times;
  for (int i = 0; i < repeat; ++i) {
    const absl::StatusOr<absl::Duration> time = call();
    if (!time.ok()) return time;
    times.push_back(*time);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

template <class Call>
absl::StatusOr<absl::Duration> duration_of(const Call& call) {
  const absl::Time start = steady_now();
  if (const auto done = call(); !done.ok()) return done.status();
  return steady_now() - start;
}

double gigabytes_per_second(std::int64_t bytes, absl::Duration time) {
  return static_cast<double>(bytes) / 1e9 / absl::ToDoubleSeconds(time);
}

absl::Status measure_way(Job& job, const Client& client, const Session& session, const Options& options) {
  const auto round_trip =
      median(options.repeat, [&] { return duration_of([&] { return client.health(job.call()); }); });
  if (!round_trip.ok()) return round_trip.status();
  const absl::StatusOr<Array> image = bench_image(options.size);
  if (!image.ok()) return image.status();
  const auto upload =
      median(options.repeat, [&] { return duration_of([&] { return job.upload(session, image->view()); }); });
  if (!upload.ok()) return upload.status();
  const absl::StatusOr<Buffer> buffer = job.upload(session, image->view());
  if (!buffer.ok()) return buffer.status();
  DownloadOptions quiet;
  quiet.call = job.call();
  job.stages().begin("download");
  const auto download =
      median(options.repeat, [&] { return duration_of([&] { return session.download(*buffer, quiet); }); });
  job.stages().end();
  if (!download.ok()) return download.status();
  job.report().add("round_trip_seconds", absl::ToDoubleSeconds(*round_trip));
  job.report().add("upload_gigabytes_per_second", gigabytes_per_second(buffer->size_bytes(), *upload));
  job.report().add("download_gigabytes_per_second", gigabytes_per_second(buffer->size_bytes(), *download));
  return absl::OkStatus();
}

absl::StatusOr<Report> measure(Job& job, const Session& session, const BenchRow& row,
                               const Options& options) {
  const absl::StatusOr<Array> input = row.input(options.size);
  if (!input.ok()) return input.status();
  const absl::StatusOr<Buffer> buffer = job.upload(session, input->view());
  if (!buffer.ok()) return buffer.status();
  const Operation operation = row.operation(*buffer);
  const absl::StatusOr<Result> first = job.run(session, row.name, operation);  // takes memory, warms caches
  if (!first.ok()) return first.status();
  std::vector<absl::Duration> computing;
  const auto call = median(options.repeat, [&]() -> absl::StatusOr<absl::Duration> {
    const absl::Time start = steady_now();
    const absl::StatusOr<Result> result = job.run(session, row.name, operation);
    if (!result.ok()) return result.status();
    computing.push_back(result->timings().compute);
    return steady_now() - start;
  });
  if (!call.ok()) return call.status();
  std::sort(computing.begin(), computing.end());
  Report report;
  report.add("name", row.name);
  report.add("elements", buffer->shape()[0] * (buffer->shape().size() == 2 ? buffer->shape()[1] : 1));
  report.add("compute_seconds", absl::ToDoubleSeconds(computing[computing.size() / 2]));
  report.add("call_seconds", absl::ToDoubleSeconds(*call));
  return report;
}

absl::Status run_bench(Job& job, const std::vector<BenchRow>& rows, const Options& options) {
  if (!options.calls.callers.empty()) return compare_calls(job, options.calls);
  if (options.limits) return measure_limits(job, rows, {.size = options.size, .repeat = options.repeat});
  const absl::StatusOr<Client> client = job.connect();
  if (!client.ok()) return client.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  if (absl::Status way = measure_way(job, *client, *session, options); !way.ok()) return way;
  std::vector<Report> operations;
  for (const BenchRow& row : rows) {
    absl::StatusOr<Report> report = measure(job, *session, row, options);
    if (!report.ok()) return report.status();
    operations.push_back(*std::move(report));
  }
  job.report().add("operations", std::move(operations));
  job.describe_run();
  return absl::OkStatus();
}

/// Programs that `bench` starts to compare with; they are not in --help.
void add_helpers_of_bench(CommandLine& line) {
  const auto address = std::make_shared<std::string>();
  const auto table_bytes = std::make_shared<std::int64_t>(0);
  CLI::App& echo = line.add("bench-echo", "A bare gRPC server",
                            [address, table_bytes](Job&) { return serve_echo(*address, *table_bytes); });
  echo.group("");
  echo.add_option("address", *address)->required();
  echo.add_option("table-bytes", *table_bytes)->check(whole_number_within(0, 1 << 30));
  const auto backend = std::make_shared<std::string>();
  line.add("bench-context", "Makes a CUDA context, of the backend cuda, and ends",
           [backend](Job&) { return make_context(*backend); })
      .group("")
      ->add_option("backend", *backend)
      ->required();
}

}  // namespace

void add_bench_command(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  CLI::App& bench = line.add(
      "bench", "Measure the server from here: the way to it, and each operation on data in its memory",
      [&line, options](Job& job) { return run_bench(job, line.bench_rows(), *options); });
  bench.add_option("--size", options->size, "Pixels of an image's side (2048)")
      ->check(whole_number_within(16, 16384))
      ->type_name("N");
  bench.add_option("--repeat", options->repeat, "Runs of each, of which the middle one counts (5)")
      ->check(whole_number_within(1, 1000))
      ->type_name("N");
  CLI::Option* limits = bench.add_flag(
      "--limits", options->limits,
      "Measure what one waits for beside what this machine can do at best: transfers beside plain sockets, "
      "or a copy where memory is shared, small calls beside a bare gRPC server, five operations in one call, "
      "a blur's files in TMPDIR, a private daemon beside a CUDA context");
  constexpr std::size_t kMostRows = 16;
  add_list(
      bench, "--concurrency", options->calls.callers, kMostRows, whole_number_within(1, 1024),
      "Measure small calls by so many callers at a time instead, beside a bare gRPC server with the same "
      "messages: p50, p99 and calls a second of both")
      .type_name("N,...")
      ->excludes(limits);
  bench
      .add_option("--rounds", options->calls.rounds,
                  "Turns of each of the two servers, with --concurrency (5)")
      ->check(whole_number_within(1, 1000))
      ->type_name("N");
  add_helpers_of_bench(line);
}

}  // namespace cumulus::cli
