#include "cli/commands/bench_calls/compare.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands/bench_calls/echo.h"
#include "cli/commands/bench_calls/load.h"
#include "cumulus/v1/operations.pb.h"
#include "library/connection.h"
#include "library/wire.h"

namespace cumulus::cli {
namespace {

/// In turns, so that what else the machine does meets both.
absl::StatusOr<ComparedCalls> take_turns(Connection& server, Connection& bare, int callers,
                                         const CompareOptions& options, const CallOptions& call_options) {
  ComparedCalls compared{.callers = callers, .server = {}, .bare = {}, .paced_bare = {}};
  for (int round = -1; round < options.rounds; ++round) {  // the first warms up, and does not count
    const absl::Duration duration = absl::Seconds(round < 0 ? options.seconds / 4 : options.seconds);
    const auto median = [&](Connection& connection, absl::Duration pace,
                            LoadResult& result) -> absl::StatusOr<absl::Duration> {
      absl::StatusOr<LoadResult> load =
          run_load(connection, options.call, {callers, duration, pace}, call_options);
      if (!load.ok()) return load.status();
      if (round >= 0) result.add(*load);
      return absl::Seconds(load->quantile(0.5));
    };
    const auto served = median(server, {}, compared.server);
    if (!served.ok()) return served.status();
    auto echoed = median(bare, {}, compared.bare);
    if (echoed.ok() && callers == 1) echoed = median(bare, *served, compared.paced_bare);
    if (!echoed.ok()) return echoed.status();
  }
  return compared;
}

/// Of the arrays that come with the answer.
absl::StatusOr<std::int64_t> answered_bytes(Connection& server, const SmallCall& call,
                                            const CallOptions& options) {
  absl::StatusOr<grpc::ByteBuffer> answer = server.call_and_wait(call.method, call.request, options);
  if (!answer.ok()) return answer.status();
  v1::OperationResult result;
  if (absl::Status parsed = wire::parse(*answer, result); !parsed.ok()) return parsed;
  std::size_t bytes = 0;
  for (const v1::NamedArray& array : result.arrays()) bytes += array.inline_array().data().size();
  return static_cast<std::int64_t>(bytes);
}

Report describe(ComparedCalls& pair) {
  const double p50 = pair.server.quantile(0.5);
  const double p99 = pair.server.quantile(0.99);
  const double bare_p50 = pair.bare.quantile(0.5);
  const double bare_p99 = pair.bare.quantile(0.99);
  Report report;
  report.add("callers", pair.callers);
  report.add("p50_seconds", p50);
  report.add("p99_seconds", p99);
  report.add("requests_per_second", pair.server.calls_per_second());
  report.add("bare_p50_seconds", bare_p50);
  report.add("bare_p99_seconds", bare_p99);
  report.add("bare_requests_per_second", pair.bare.calls_per_second());
  report.add("added_p50_seconds", p50 - bare_p50);
  report.add("p99_ratio", p99 / bare_p99);
  report.add("requests_ratio", pair.server.calls_per_second() / pair.bare.calls_per_second());
  if (pair.callers == 1) {
    const double paced_p50 = pair.paced_bare.quantile(0.5);
    report.add("paced_bare_p50_seconds", paced_p50);
    report.add("added_to_paced_p50_seconds", p50 - paced_p50);
  }
  return report;
}

}  // namespace

absl::StatusOr<std::vector<ComparedCalls>> run_beside_bare(Job& job, const CompareOptions& options) {
  const absl::StatusOr<std::string> target = job.target();
  if (!target.ok()) return target.status();
  const auto server = Connection::open(*target, job.connect_options());
  if (!server.ok()) return server.status();
  const absl::StatusOr<std::int64_t> bytes = answered_bytes(**server, options.call, job.call());
  if (!bytes.ok()) return bytes.status();
  const auto echo = EchoServer::start(*target, *bytes);
  if (!echo.ok()) return echo.status();
  const auto bare = Connection::open((*echo)->target(), {.credentials = Credentials()});
  if (!bare.ok()) return bare.status();
  std::vector<ComparedCalls> compared;
  for (const int callers : options.callers) {
    absl::StatusOr<ComparedCalls> pair = take_turns(**server, **bare, callers, options, job.call());
    if (!pair.ok()) return pair.status();
    compared.push_back(*std::move(pair));
  }
  return compared;
}

absl::Status compare_calls(Job& job, const CompareOptions& options) {
  absl::StatusOr<std::vector<ComparedCalls>> compared = run_beside_bare(job, options);
  if (!compared.ok()) return compared.status();
  std::vector<Report> rows;
  for (ComparedCalls& pair : *compared) rows.push_back(describe(pair));
  job.report().add("calls", std::move(rows));
  return absl::OkStatus();
}

}  // namespace cumulus::cli
