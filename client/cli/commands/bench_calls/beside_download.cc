#include "cli/commands/bench_calls/beside_download.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "cli/app/bench_rows.h"
#include "cli/commands/bench_calls/limit_rows.h"
#include "cli/commands/bench_calls/load.h"
#include "library/connection.h"

namespace cumulus::cli {
namespace {

/// Downloads a buffer on a thread of its own until it is stopped.
class Downloader {
 public:
  Downloader(const Session& session, const Buffer& buffer, Array& into)
      : session_(session), buffer_(buffer), into_(into), thread_([this] { run(); }) {}
  ~Downloader() {
    if (thread_.joinable()) (void)stop();
  }
  Downloader(const Downloader&) = delete;
  Downloader& operator=(const Downloader&) = delete;

  absl::Status stop() {
    stopping_ = true;
    thread_.join();
    return status_;
  }

 private:
  void run() {
    DownloadOptions options;
    options.connections = 1;
    while (status_.ok() && !stopping_) status_ = session_.download(buffer_, into_.mutable_bytes(), options);
  }

  const Session& session_;
  const Buffer& buffer_;
  Array& into_;
  std::atomic<bool> stopping_ = false;
  absl::Status status_;
  std::thread thread_;
};

}  // namespace

absl::Status add_calls_beside_download(Job& job, const LimitOptions& options, std::vector<Report>& rows) {
  const absl::StatusOr<std::string> target = job.target();
  if (!target.ok()) return target.status();
  const auto connection = Connection::open(*target, job.connect_options());
  if (!connection.ok()) return connection.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  absl::StatusOr<Array> image = bench_image(options.size);
  if (!image.ok()) return image.status();
  const absl::StatusOr<Buffer> buffer = job.upload(*session, image->view());
  if (!buffer.ok()) return buffer.status();

  LoadResult alone;
  LoadResult beside;
  const SmallCall call = small_call();
  const auto load = [&](LoadResult& result) {
    absl::StatusOr<LoadResult> seen = run_load(**connection, call, {1, absl::Seconds(1), {}}, job.call());
    if (seen.ok()) result.add(*seen);
    return seen.status();
  };
  for (int i = 0; i < options.repeat; ++i) {
    absl::Status status = load(alone);
    if (!status.ok()) return status;
    Downloader downloader(*session, *buffer, *image);
    status = load(beside);
    status.Update(downloader.stop());
    if (!status.ok()) return status;
  }
  rows.push_back(limit_row("a small call beside a download, p99", absl::Seconds(beside.quantile(0.99)),
                           "the same call alone, p99", absl::Seconds(alone.quantile(0.99))));
  return absl::OkStatus();
}

}  // namespace cumulus::cli
