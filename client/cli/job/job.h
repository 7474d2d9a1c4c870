#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/job/report.h"
#include "cli/job/resident_files.h"
#include "cli/job/server.h"
#include "cli/job/stages.h"
#include "cumulus/client.h"

namespace cumulus::cli {

class NpyWriter;
struct FileArray;

/// What stands before the command's name.
struct GlobalOptions {
  std::string server = {};                     // HOST:PORT or unix:PATH; empty: a private daemon
  std::string backend = {};                    // of the private daemon; empty: it chooses
  std::optional<double> wait_for_server = {};  // seconds
  bool dry_run = false;
  bool json = false;
  Credentials credentials = {};  // of the server that was named

  std::optional<absl::Duration> wait() const {
    return wait_for_server ? std::optional(absl::Seconds(*wait_for_server)) : std::nullopt;
  }
};

/// One run of a command: its server, its stages and its report.
class Job {
 public:
  Job(const GlobalOptions& options, Cancellation interrupt)
      : server_(std::make_shared<JobServer>(options.server, options.backend, options.credentials,
                                            options.wait())),
        resident_files_(std::make_shared<ResidentFiles>()),
        dry_run_(options.dry_run),
        json_(options.json),
        interrupt_(std::move(interrupt)) {}
  /// A job beside `first`, for a thread of its own: at the same server, where interactive jobs go before it,
  /// and stopped by the same interrupt. It shows no bars.
  static std::unique_ptr<Job> beside(const Job& first) { return std::unique_ptr<Job>(new Job(first)); }

  /// The server that was named, or a private one, started at the first call.
  absl::StatusOr<Client> connect();
  /// Where that server is.
  absl::StatusOr<std::string> target() { return server_->target(); }
  /// For connections of one's own to it.
  ConnectOptions connect_options() const { return server_->options(); }
  /// Connects and opens the command's session.
  absl::StatusOr<Session> open_session();
  /// Whether connect() found no server.
  bool no_server() const { return no_server_; }
  /// The server was there and is no more: connect() need not be asked again.
  void lose_server() { no_server_ = true; }
  /// The arrays of the file `path` on the server, where they stay for all jobs beside this one: brought there
  /// by `load` if no job has done that yet.
  absl::StatusOr<std::shared_ptr<const ResidentFile>> resident(const std::string& path,
                                                               const ResidentFiles::Load& load);
  /// Whether somebody wants the job to end.
  bool interrupted() const { return interrupt_.cancelled(); }
  /// The report is worth printing also if the job fails.
  void report_failure_too() { reports_failure_ = true; }
  bool reports_failure() const { return reports_failure_; }

  Stages& stages() { return stages_; }
  /// Begins the stage "read" of what goes to the server, and starts a private daemon meanwhile.
  void begin_read() {
    server_->begin();
    stages_.begin("read");
  }
  Report& report() { return report_; }
  /// In the report's place.
  void print_instead(std::string text) { text_ = std::move(text); }
  /// What is to be printed at the end.
  std::string output() const {
    return !text_.empty() ? text_ : json_ ? report_.to_json() + "\n" : report_.to_text();
  }
  bool json() const { return json_; }
  void report_in_json() { json_ = true; }
  /// Calls are checked and not run, and nothing is to be written: run() ends with a status that conclude()
  /// turns into OK, so that a command goes no further.
  bool dry_run() const { return dry_run_; }
  absl::Status conclude(const absl::Status& status);

  /// For every call, so that an interrupt stops it.
  CallOptions call() const {
    CallOptions options;
    options.cancellation = interrupt_;
    return options;
  }
  RunOptions run() const {
    RunOptions options;
    options.call = call();
    options.priority = priority_;
    options.validate_only = dry_run_;
    return options;
  }

  /// `result` with the server's times added to the report's; of a dry run, see dry_run().
  absl::StatusOr<Result> accept(absl::StatusOr<Result> result);

  /// Uploads as the stage "upload". The array's memory stays as long as the session: it may have to be
  /// uploaded again.
  absl::StatusOr<Buffer> upload(const Session& session, const ArrayView& array);
  /// Likewise; the session keeps the array.
  absl::StatusOr<Buffer> upload(const Session& session, Array array);
  /// Runs as the stage `stage` and adds the server's times to the report's. Of a dry run, see dry_run().
  absl::StatusOr<Result> run(const Session& session, const std::string& stage, const Operation& operation);
  /// As run, of the image file at `path`, which the server decodes. Its bytes travel within the call where
  /// they fit, and else are uploaded first.
  absl::StatusOr<Result> run_on_file(const Session& session, const std::string& stage,
                                     const std::string& path,
                                     const std::function<Operation(const Source&)>& operation);
  /// Downloads as the stage "download".
  absl::StatusOr<Array> download(const Session& session, const Result& result, const std::string& name);
  /// Likewise, for the file `path`: where that is a .npy file, the array is written while it comes.
  absl::StatusOr<FileArray> download_for(const std::string& path, const Session& session,
                                         const Result& result, const std::string& name);
  /// The one element of an array of the type T, likewise.
  template <class T>
  absl::StatusOr<T> download_number(const Session& session, const Result& result, const std::string& name) {
    const absl::StatusOr<Array> array = download(session, result, name);
    if (!array.ok()) return array.status();
    const auto values = array->values<T>();
    if (!values.ok()) return values.status();
    return values->front();
  }

  /// Adds device, server and times to the report. After open_session().
  void describe_run();

 private:
  void count(const Timings& timings);
  absl::StatusOr<Array> download(const Session& session, const Result& result, const std::string& name,
                                 NpyWriter* file);
  explicit Job(const Job& first)
      : server_(first.server_),
        resident_files_(first.resident_files_),
        dry_run_(first.dry_run_),
        json_(first.json_),
        interrupt_(first.interrupt_),
        priority_(Priority::kBatch),
        patience_(absl::Seconds(30)),
        stages_(Stages::Bars::kNever) {}
  absl::StatusOr<Buffer> upload(const Session& session, const ArrayView& array,
                                std::shared_ptr<const void> keep);

  const std::shared_ptr<JobServer> server_;
  const std::shared_ptr<ResidentFiles> resident_files_;
  const bool dry_run_;
  bool json_;
  const Cancellation interrupt_;
  const Priority priority_ = Priority::kInteractive;
  // How long connect() waits for a server: one that others of the same command have found may be restarting.
  const absl::Duration patience_ = absl::ZeroDuration();
  bool no_server_ = false;
  bool reports_failure_ = false;
  bool checked_ = false;          // by a dry run
  std::optional<Client> client_;  // of the session
  std::int64_t max_encoded_bytes_ = 0;
  Stages stages_;
  Report report_;
  std::string text_;
  Timings server_times_;
};

using RunCommand = std::function<absl::Status(Job&)>;

}  // namespace cumulus::cli
