#include "cli/commands/bench_calls/limits.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/bench_rows.h"
#include "cli/app/invocation.h"
#include "cli/batch/manifest.h"
#include "cli/commands/bench_calls/chain.h"
#include "cli/commands/bench_calls/compare.h"
#include "cli/commands/bench_calls/plain_socket.h"
#include "cli/files/input.h"
#include "cli/files/npy.h"
#include "cli/files/output.h"
#include "cli/job/temporary_folder.h"

namespace cumulus::cli {
namespace {

using Measured = absl::StatusOr<absl::Duration>;
using Measure = std::function<Measured()>;

Report row(const std::string& what, absl::Duration time, const std::string& limit, absl::Duration least) {
  Report report;
  report.add("what", what);
  report.add("seconds", absl::ToDoubleSeconds(time));
  report.add("limit", limit);
  report.add("limit_seconds", absl::ToDoubleSeconds(least));
  report.add("times_limit", absl::FDivDuration(time, least));
  return report;
}

absl::Duration median(std::vector<absl::Duration> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// The medians of both, which take turns, so that what else the machine does meets both. A first turn warms
/// up.
absl::StatusOr<std::pair<absl::Duration, absl::Duration>> in_turns(int repeat, const Measure& ours,
                                                                   const Measure& limit) {
  std::vector<absl::Duration> times;
  std::vector<absl::Duration> least;
  for (int i = -1; i < repeat; ++i) {
    for (const auto& [measure, taken] : {std::pair(&ours, &times), std::pair(&limit, &least)}) {
      const Measured time = (*measure)();
      if (!time.ok()) return time.status();
      if (i >= 0) taken->push_back(*time);
    }
  }
  return std::pair(median(times), median(least));
}

template <class Call>
Measured timed(const Call& call) {
  const absl::Time start = absl::Now();
  if (const absl::Status status = call(); !status.ok()) return status;
  return absl::Now() - start;
}

absl::Status add_transfers(Job& job, const LimitOptions& options, std::vector<Report>& rows) {
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Array> image = bench_image(options.size);
  if (!image.ok()) return image.status();
  absl::StatusOr<Array> back = Array::allocate(image->type(), image->shape());
  if (!back.ok()) return back.status();
  UploadOptions up;
  up.call = job.call();
  DownloadOptions down;
  down.call = job.call();
  std::optional<Buffer> buffer;
  const Measure upload = [&] {
    return timed([&] {
      absl::StatusOr<Buffer> uploaded = session->upload(image->view(), up);
      if (!uploaded.ok()) return uploaded.status();
      buffer = *std::move(uploaded);
      return absl::OkStatus();
    });
  };
  const Measure download = [&] {
    return timed([&] { return session->download(*buffer, back->mutable_bytes(), down); });
  };
  const Measure socket = [&] { return move_through_socket(image->bytes()); };
  const std::string megabytes = absl::StrCat(image->bytes().size() >> 20, " MiB");
  for (const auto& [what, measure] : {std::pair("upload ", &upload), std::pair("download ", &download)}) {
    const auto times = in_turns(options.repeat, *measure, socket);
    if (!times.ok()) return times.status();
    rows.push_back(row(what + megabytes, times->first, "a plain Unix socket", times->second));
  }
  return absl::OkStatus();
}

absl::Status add_calls(Job& job, const LimitOptions& options, std::vector<Report>& rows) {
  CompareOptions compare;
  compare.callers = {1, 64};
  compare.rounds = options.repeat;
  absl::StatusOr<std::vector<ComparedCalls>> compared = run_beside_bare(job, compare);
  if (!compared.ok()) return compared.status();
  ComparedCalls& alone = compared->front();
  rows.push_back(row("a small call, median", absl::Seconds(alone.server.quantile(0.5)),
                     "a bare gRPC server with the same messages", absl::Seconds(alone.bare.quantile(0.5))));
  const ComparedCalls& many = compared->back();
  rows.push_back(row(
      "a small call among those of 64 callers, one a turn", absl::Seconds(1 / many.server.calls_per_second()),
      "a bare gRPC server with the same messages", absl::Seconds(1 / many.bare.calls_per_second())));
  return absl::OkStatus();
}

absl::Status add_chain(Job& job, const LimitOptions& options, std::vector<Report>& rows) {
  constexpr int kRounds = 20;  // of each repetition: they take a millisecond
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<ChainTimes> times = measure_chain(job, *session, options.repeat * kRounds);
  if (!times.ok()) return times.status();
  const absl::Duration overhead = times->one_filter.whole - times->one_filter.kernels;
  const std::string limit = "the kernels, and what one call takes besides";
  rows.push_back(row("five small operations, one call", times->one_call.whole, limit,
                     times->one_call.kernels + overhead));
  rows.push_back(
      row("the same, five calls", times->five_calls.whole, limit, times->five_calls.kernels + overhead));
  return absl::OkStatus();
}

/// Of a blur by the command line, all but connecting and computing.
Measured blur_file(const Job& first, const std::string& from, const std::string& to) {
  const auto command = read_invocation({"blur", from, "-o", to, "--sigma", "8"});
  if (!command.ok()) return command.status();
  const std::unique_ptr<Job> job = Job::beside(first);
  if (const absl::Status done = (*command)->run(*job); !done.ok()) return done;
  absl::Duration sum;
  for (const char* stage : {"read", "upload", "download", "write"}) sum += job->stages().of(stage);
  return sum;
}

absl::Status read_into(const std::string& path, std::span<std::byte> memory) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ssize_t count = file < 0 ? -1 : 1;
  while (count > 0 && !memory.empty()) {
    count = ::read(file, memory.data(), memory.size());
    if (count > 0) memory = memory.subspan(static_cast<std::size_t>(count));
  }
  if (file >= 0) ::close(file);
  if (memory.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot read ", path, " to its end"));
}

/// The same bytes, without a server between.
Measured copy_file(const std::string& from, const std::string& to, std::span<std::byte> memory) {
  return timed([&]() -> absl::Status {
    absl::Status read = read_into(from, memory);
    if (!read.ok()) return read;
    OutputFile file(to);
    file.expect(static_cast<std::int64_t>(memory.size()));
    file.write(memory);
    return file.commit();
  });
}

absl::Status add_files(const Job& job, const LimitOptions& options, std::vector<Report>& rows) {
  const absl::StatusOr<std::unique_ptr<TemporaryFolder>> folder = TemporaryFolder::make();
  if (!folder.ok()) return folder.status();
  const std::string from = ((*folder)->path() / "image.npy").string();
  const std::string to = ((*folder)->path() / "blurred.npy").string();
  const std::string copy = ((*folder)->path() / "copy.npy").string();
  const absl::StatusOr<Array> image = bench_image(options.size);
  if (!image.ok()) return image.status();
  if (absl::Status written = write_npy(from, image->view()); !written.ok()) return written;
  absl::StatusOr<Array> memory = read_file(from);  // of the file's size, and not its pages
  if (!memory.ok()) return memory.status();
  memory = Array::allocate(ElementType::kUint8, memory->shape());
  if (!memory.ok()) return memory.status();
  const std::string megabytes = absl::StrCat(image->bytes().size() >> 20, " MiB");
  for (const bool anew : {true, false}) {
    const auto times = in_turns(
        options.repeat,
        [&] {
          if (anew) std::remove(to.c_str());
          return blur_file(job, from, to);
        },
        [&] {
          if (anew) std::remove(copy.c_str());
          return copy_file(from, copy, memory->mutable_bytes());
        });
    if (!times.ok()) return times.status();
    rows.push_back(row(absl::StrCat("files and transfers of a blur, ", megabytes, " to ",
                                    anew ? "a new file" : "a file that is there"),
                       times->first, "reading and writing these files", times->second));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status measure_limits(Job& job, const LimitOptions& options) {
  std::vector<Report> rows;
  absl::Status added = add_transfers(job, options, rows);
  if (added.ok()) added = add_calls(job, options, rows);
  if (added.ok()) added = add_chain(job, options, rows);
  if (added.ok()) added = add_files(job, options, rows);
  if (!added.ok()) return added;
  job.report().add("rows", std::move(rows));
  job.describe_run();
  return absl::OkStatus();
}

}  // namespace cumulus::cli
