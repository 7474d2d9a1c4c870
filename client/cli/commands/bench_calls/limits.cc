#include "cli/commands/bench_calls/limits.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/app/bench_rows.h"
#include "cli/app/invocation.h"
#include "cli/batch/manifest.h"
#include "cli/commands/bench_calls/beside_download.h"
#include "cli/commands/bench_calls/chain.h"
#include "cli/commands/bench_calls/limit_calls.h"
#include "cli/commands/bench_calls/limit_rows.h"
#include "cli/commands/bench_calls/limit_starts.h"
#include "cli/commands/bench_calls/limit_transfers.h"
#include "cli/files/input.h"
#include "cli/files/npy.h"
#include "cli/files/output.h"
#include "cli/job/temporary_folder.h"

namespace cumulus::cli {
namespace {

absl::Status add_chain(Job& job, const LimitOptions& options, std::vector<Report>& rows) {
  constexpr int kRounds = 20;  // of each repetition: they take a millisecond
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<ChainTimes> times = measure_chain(job, *session, options.repeat * kRounds);
  if (!times.ok()) return times.status();
  const absl::Duration overhead = times->one_filter.whole - times->one_filter.kernels;
  const std::string limit = "the kernels, and what one call takes besides";
  rows.push_back(limit_row("five small operations, one call", times->one_call.whole, limit,
                           times->one_call.kernels + overhead));
  rows.push_back(limit_row("the same, five calls", times->five_calls.whole, limit,
                           times->five_calls.kernels + overhead));
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
    rows.push_back(limit_row(absl::StrCat("files and transfers of a blur, ", megabytes, " to ",
                                          anew ? "a new file" : "a file that is there"),
                             times->first, "reading and writing these files", times->second));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status measure_limits(Job& job, const std::vector<BenchRow>& operations, const LimitOptions& options) {
  std::vector<Report> rows;
  absl::Status added = add_transfer_limits(job, options, rows);
  if (added.ok()) added = add_call_limits(job, operations, options, rows);
  if (added.ok()) added = add_calls_beside_download(job, options, rows);
  if (added.ok()) added = add_chain(job, options, rows);
  if (added.ok()) added = add_files(job, options, rows);
  if (added.ok()) added = add_start_limit(job, options, rows);
  if (!added.ok()) return added;
  job.report().add("rows", std::move(rows));
  job.describe_run();
  return absl::OkStatus();
}

}  // namespace cumulus::cli
