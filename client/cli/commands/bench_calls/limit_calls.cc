#include "cli/commands/bench_calls/limit_calls.h"

#include <absl/time/clock.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/commands/bench_calls/compare.h"
#include "cli/commands/bench_calls/echo.h"
#include "cli/commands/bench_calls/limit_rows.h"
#include "cli/commands/bench_calls/load.h"
#include "library/connection.h"
#include "proto/steady_time.h"

namespace cumulus::cli {
namespace {

constexpr const char* kBare = "a bare gRPC server with the same messages";
constexpr const char* kPacedBare = "a bare gRPC server that is called no more often";

Report row_of_many(const std::string& what, const ComparedCalls& calls) {
  return limit_row(what, absl::Seconds(1 / calls.server.calls_per_second()), kBare,
                   absl::Seconds(1 / calls.bare.calls_per_second()));
}

absl::Status add_filters(Job& job, CompareOptions compare, std::vector<Report>& rows) {
  compare.callers = {1, 64};
  absl::StatusOr<std::vector<ComparedCalls>> compared = run_beside_bare(job, compare);
  if (!compared.ok()) return compared.status();
  ComparedCalls& alone = compared->front();
  const absl::Duration median = absl::Seconds(alone.server.quantile(0.5));
  rows.push_back(limit_row("a small call, median", median, kBare, absl::Seconds(alone.bare.quantile(0.5))));
  rows.push_back(limit_row("a small call, median, as often", median, kPacedBare,
                           absl::Seconds(alone.paced_bare.quantile(0.5))));
  rows.push_back(row_of_many("a small call among those of 64 callers, one a turn", compared->back()));
  return absl::OkStatus();
}

absl::Status add_tables(Job& job, CompareOptions compare, std::vector<Report>& rows) {
  compare.callers = {64};
  compare.call = table_call();
  const absl::StatusOr<std::vector<ComparedCalls>> compared = run_beside_bare(job, compare);
  if (!compared.ok()) return compared.status();
  rows.push_back(row_of_many("a table of 64 x 64 among those of 64 callers, one a turn", compared->front()));
  return absl::OkStatus();
}

/// An operation on little data in the server's memory, and calls of the bare server in the same way.
class OperationCalls {
 public:
  OperationCalls(Job& job, const Session& session, const BenchRow& row, Connection& bare)
      : job_(job), session_(session), row_(row), bare_(bare) {}

  absl::Status take_input() {
    constexpr std::int64_t kSide = 16;
    const absl::StatusOr<Array> input = row_.input(kSide);
    if (!input.ok()) return input.status();
    absl::StatusOr<Buffer> buffer = job_.upload(session_, input->view());
    if (!buffer.ok()) return buffer.status();
    input_ = *std::move(buffer);
    operation_ = row_.operation(*input_);
    return absl::OkStatus();
  }
  /// Some calls of either, one after the other; those of the bare server begin as far apart.
  absl::Status take_turn(bool counts) {
    constexpr int kCalls = 50;
    std::vector<absl::Duration> wholes;
    for (int i = 0; i < kCalls; ++i) {
      const absl::Time start = steady_now();
      const absl::StatusOr<Result> result = job_.accept(session_.run(*operation_, job_.run()));
      if (!result.ok()) return result.status();
      wholes.push_back(steady_now() - start);
      if (counts) besides_.push_back(wholes.back() - result->timings().compute);
    }
    const absl::Duration pace = median(wholes);
    for (int i = 0; i < kCalls; ++i) {
      const absl::Time start = steady_now();
      const auto answer = bare_.call_and_wait(call_.method, call_.request, job_.call());
      if (!answer.ok()) return answer.status();
      const absl::Time end = steady_now();
      if (counts) bares_.push_back(end - start);
      absl::SleepFor(start + pace - end);
    }
    return absl::OkStatus();
  }
  absl::Duration besides() const { return median(besides_); }
  absl::Duration bare() const { return median(bares_); }

 private:
  Job& job_;
  const Session& session_;
  const BenchRow& row_;
  Connection& bare_;
  const SmallCall call_ = small_call();
  std::optional<Buffer> input_;
  std::optional<Operation> operation_;
  std::vector<absl::Duration> besides_;  // of each call, all but its kernels
  std::vector<absl::Duration> bares_;
};

absl::Status add_operations(Job& job, const std::vector<BenchRow>& operations, const LimitOptions& options,
                            std::vector<Report>& rows) {
  const absl::StatusOr<std::string> target = job.target();
  if (!target.ok()) return target.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const auto echo = EchoServer::start(*target, 0);
  if (!echo.ok()) return echo.status();
  const auto bare = Connection::open((*echo)->target(), {.credentials = Credentials()});
  if (!bare.ok()) return bare.status();
  std::vector<std::unique_ptr<OperationCalls>> calls;
  for (const BenchRow& row : operations) {
    calls.push_back(std::make_unique<OperationCalls>(job, *session, row, **bare));
    if (absl::Status taken = calls.back()->take_input(); !taken.ok()) return taken;
  }
  for (int round = -1; round < options.repeat; ++round) {  // the first warms up, and does not count
    for (const auto& each : calls) {
      if (absl::Status taken = each->take_turn(round >= 0); !taken.ok()) return taken;
    }
  }
  std::vector<absl::Duration> besides;
  std::vector<absl::Duration> bares;
  for (const auto& each : calls) {
    besides.push_back(each->besides());
    bares.push_back(each->bare());
  }
  rows.push_back(limit_row("a small operation besides its kernels, the operations' median", median(besides),
                           kPacedBare, median(bares)));
  return absl::OkStatus();
}

}  // namespace

absl::Status add_call_limits(Job& job, const std::vector<BenchRow>& operations, const LimitOptions& options,
                             std::vector<Report>& rows) {
  CompareOptions compare;
  compare.rounds = options.repeat;
  absl::Status added = add_filters(job, compare, rows);
  if (added.ok()) added = add_operations(job, operations, options, rows);
  if (added.ok()) added = add_tables(job, compare, rows);
  return added;
}

}  // namespace cumulus::cli
