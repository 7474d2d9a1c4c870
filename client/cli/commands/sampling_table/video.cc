#include "cli/commands/sampling_table/video.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/batch/expansion.h"
#include "cli/commands/sampling_table/table_file.h"
#include "proto/steady_time.h"

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

enum Stage : std::size_t { kRead, kUpload, kBuild, kDownload, kWrite, kStages };
constexpr std::array<const char*, kStages> kStageNames = {"read", "upload", "build", "download", "write"};

/// The frames of a video, each of which one of several threads takes through all stages.
class VideoRun {
 public:
  VideoRun(Job& job, const VideoOptions& options, std::vector<std::string> frames)
      : command_(job), options_(options), frames_(std::move(frames)) {}

  absl::Status run() {
    const absl::Time start = steady_now();
    command_.stages().begin("frames");
    std::vector<std::thread> threads;
    const std::size_t count =
        std::min<std::size_t>(static_cast<std::size_t>(options_.at_once), frames_.size());
    for (std::size_t worker = 0; worker < count; ++worker) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    command_.stages().end();
    lasted_ = steady_now() - start;
    return failure_;
  }

  void describe(Report& report) const {
    report.add("frames", frames_.size());
    report.add("frames_per_second", static_cast<double>(frames_.size()) / absl::ToDoubleSeconds(lasted_));
    Report stages;
    for (std::size_t stage = 0; stage < kStages; ++stage)
      stages.add(kStageNames[stage], absl::ToDoubleSeconds(absl::Nanoseconds(nanoseconds_[stage].load())));
    report.add("seconds_of_all_frames", std::move(stages));
  }

 private:
  void work() {
    const std::unique_ptr<Job> job = Job::beside(command_);
    absl::StatusOr<Session> session = job->open_session();
    if (!session.ok()) return fail(session.status());
    while (!stopped_ && !command_.interrupted()) {
      const std::size_t index = next_++;
      if (index >= frames_.size()) return;
      if (absl::Status done = job->conclude(make_table(*job, *session, index)); !done.ok()) return fail(done);
      command_.stages().advance(static_cast<std::int64_t>(++done_),
                                static_cast<std::int64_t>(frames_.size()));
    }
    if (command_.interrupted()) fail(absl::CancelledError());
  }

  template <class Body>
  auto timed(Stage stage, const Body& body) {
    const absl::Time start = steady_now();
    auto result = body();
    nanoseconds_[stage] += absl::ToInt64Nanoseconds(steady_now() - start);
    return result;
  }

  absl::Status make_table(Job& job, const Session& session, std::size_t index) {
    const std::string& path = frames_[index];
    const absl::StatusOr<Map> map = timed(kRead, [&] { return read_map(path, options_.table.choice); });
    if (!map.ok()) return map.status();
    const auto weights = timed(kUpload, [&] { return job.upload(session, map->pixels.view()); });
    if (!weights.ok()) return weights.status();
    const SamplingTableOptions options = options_for(options_.table, *map);
    const auto built =
        timed(kBuild, [&] { return job.run(session, "build", build_sampling_table(*weights, options)); });
    if (!built.ok()) return explain_table_refusal(built.status(), path, map->pixels, options_.table);
    const auto table = timed(kDownload, [&] { return job.download(session, *built, "table"); });
    if (!table.ok()) return table.status();
    const fs::path place = fs::path(options_.folder) / fs::path(path).stem();
    return timed(kWrite, [&] { return write_table(place.string() + ".cst", table->view()); });
  }

  void fail(const absl::Status& status) {
    stopped_ = true;
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = status;
  }

  Job& command_;
  const VideoOptions& options_;
  const std::vector<std::string> frames_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> done_ = 0;
  std::atomic<bool> stopped_ = false;
  std::array<std::atomic<std::int64_t>, kStages> nanoseconds_ = {};
  absl::Duration lasted_;
  std::mutex mutex_;
  absl::Status failure_;
};

/// Two frames of one name would have one table.
absl::Status require_own_names(const std::vector<std::string>& frames) {
  std::vector<std::string> stems;
  for (const std::string& frame : frames) stems.push_back(fs::path(frame).stem().string());
  std::sort(stems.begin(), stems.end());
  const auto twice = std::adjacent_find(stems.begin(), stems.end());
  if (twice == stems.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "two frames are called ", *twice, ", and so would be their tables; give each a name of its own"));
}

}  // namespace

absl::Status run_video_tables(Job& job, const VideoOptions& options) {
  absl::StatusOr<std::vector<std::string>> frames = files_named_by(options.frames);
  if (!frames.ok()) return frames.status();
  if (absl::Status distinct = require_own_names(*frames); !distinct.ok()) return distinct;
  std::error_code error;
  if (!job.dry_run()) fs::create_directory(options.folder, error);
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot make the folder ", options.folder, ": ", error.message(), "; name another"));
  }
  if (const absl::StatusOr<Client> client = job.connect(); !client.ok()) return client.status();
  VideoRun run(job, options, *std::move(frames));
  if (absl::Status done = run.run(); !done.ok()) return done;
  job.report().add("command", "video-tables");
  run.describe(job.report());
  job.report().add("output", options.folder);
  job.report().add("seconds", job.stages().seconds());
  return absl::OkStatus();
}

}  // namespace cumulus::cli
