#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/job/report.h"
#include "cli/job/server.h"
#include "cli/job/stages.h"
#include "cumulus/client.h"

namespace cumulus::cli {

/// What stands before the command's name.
struct GlobalOptions {
  std::string server = {};   // HOST:PORT or unix:PATH; empty: a private daemon
  std::string backend = {};  // of the private daemon; empty: it chooses
  bool json = false;
  Credentials credentials = {};  // of the server that was named
};

/// One run of a command: its server, its stages and its report.
class Job {
 public:
  Job(const GlobalOptions& options, Cancellation interrupt)
      : server_(std::make_shared<JobServer>(options.server, options.backend, options.credentials)),
        json_(options.json),
        interrupt_(std::move(interrupt)) {}
  /// A job beside `first`, for a thread of its own: at the same server, where interactive jobs go before it,
  /// and stopped by the same interrupt. It shows no bars.
  static std::unique_ptr<Job> beside(const Job& first) {
    return std::unique_ptr<Job>(new Job(first.server_, first.json_, first.interrupt_));
  }

  /// The server that was named, or a private one, started at the first call.
  absl::StatusOr<Client> connect();
  /// Where that server is.
  absl::StatusOr<std::string> target() { return server_->target(); }
  /// Connects and opens the command's session.
  absl::StatusOr<Session> open_session();
  /// Whether connect() found no server.
  bool no_server() const { return no_server_; }
  /// Whether somebody wants the job to end.
  bool interrupted() const { return interrupt_.cancelled(); }
  /// The report is worth printing also if the job fails.
  void report_failure_too() { reports_failure_ = true; }
  bool reports_failure() const { return reports_failure_; }

  Stages& stages() { return stages_; }
  Report& report() { return report_; }
  bool json() const { return json_; }

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
    return options;
  }

  /// Uploads as the stage "upload".
  absl::StatusOr<Buffer> upload(const Session& session, const ArrayView& array);
  /// Runs as the stage `stage` and adds the server's times to the report's.
  absl::StatusOr<Result> run(const Session& session, const std::string& stage, const Operation& operation);
  /// As run, of the image file at `path`, which the server decodes. Its bytes travel within the call where
  /// they fit, and else are uploaded first.
  absl::StatusOr<Result> run_on_file(const Session& session, const std::string& stage,
                                     const std::string& path,
                                     const std::function<Operation(const Source&)>& operation);
  /// Downloads as the stage "download".
  absl::StatusOr<Array> download(const Session& session, const Result& result, const std::string& name);
  /// The one element of an array of the type T, likewise.
  template <class T>
  absl::StatusOr<T> download_number(const Session& session, const Result& result, const std::string& name) {
    const absl::StatusOr<Array> array = download(session, result, name);
    if (!array.ok()) return array.status();
    const auto values = array->values<T>();
    if (!values.ok()) return values.status();
    return values->front();
  }

  void count(const Timings& timings);
  /// Adds device, server and times to the report. After open_session().
  void describe_run();

 private:
  Job(std::shared_ptr<JobServer> server, bool json, Cancellation interrupt)
      : server_(std::move(server)),
        json_(json),
        interrupt_(std::move(interrupt)),
        priority_(Priority::kBatch),
        stages_(Stages::Bars::kNever) {}

  const std::shared_ptr<JobServer> server_;
  const bool json_;
  const Cancellation interrupt_;
  const Priority priority_ = Priority::kInteractive;
  bool no_server_ = false;
  bool reports_failure_ = false;
  std::optional<Client> client_;  // of the session
  std::int64_t max_encoded_bytes_ = 0;
  Stages stages_;
  Report report_;
  Timings server_times_;
};

using RunCommand = std::function<absl::Status(Job&)>;

}  // namespace cumulus::cli
