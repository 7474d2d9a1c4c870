#include "cli/job/job.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <utility>

#include "cli/files/input.h"
#include "cli/files/npy.h"

namespace cumulus::cli {

namespace {

// Renewed as long as the command runs. Of one that is killed the server keeps the buffers no longer than
// this.
constexpr absl::Duration kLease = absl::Minutes(2);

}  // namespace

absl::StatusOr<Client> Job::connect() {
  stages_.begin("connect");
  absl::StatusOr<Client> client = server_->connect(interrupt_, patience_);
  stages_.end();
  no_server_ = !client.ok() && !refuses(client.status());
  return client;
}

absl::StatusOr<Session> Job::open_session() {
  absl::StatusOr<Client> client = connect();
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  const absl::StatusOr<Capabilities> server = client_->capabilities(call());
  if (!server.ok()) return server.status();
  max_encoded_bytes_ = server->max_encoded_bytes;
  SessionOptions options;
  options.ttl = std::min(kLease, server->max_ttl);
  options.recreate = !server_->is_private();
  options.call = call();
  return client_->create_session(options);
}

absl::StatusOr<Buffer> Job::upload(const Session& session, const ArrayView& array) {
  return upload(session, array, nullptr);
}

absl::StatusOr<Buffer> Job::upload(const Session& session, Array array) {
  const auto kept = std::make_shared<const Array>(std::move(array));
  return upload(session, kept->view(), kept);
}

absl::StatusOr<Buffer> Job::upload(const Session& session, const ArrayView& array,
                                   std::shared_ptr<const void> keep) {
  stages_.begin("upload");
  UploadOptions options;
  options.keep = std::move(keep);
  options.call = call();
  options.progress = [this](std::int64_t done, std::int64_t total) { stages_.advance(done, total); };
  absl::StatusOr<Buffer> buffer = session.upload(array, options);
  stages_.end();
  return buffer;
}

absl::StatusOr<Result> Job::run(const Session& session, const std::string& stage,
                                const Operation& operation) {
  stages_.begin(stage);
  absl::StatusOr<Result> result = accept(session.run(operation, run()));
  stages_.end();
  return result;
}

absl::StatusOr<Result> Job::accept(absl::StatusOr<Result> result) {
  if (!result.ok()) return result;
  count(result->timings());
  if (!dry_run_) return result;
  checked_ = true;
  return absl::AbortedError("checked");
}

absl::Status Job::conclude(const absl::Status& status) {
  if (!dry_run_) return status;
  if (checked_ && absl::IsAborted(status)) {
    report_.add("dry_run", "the server takes the call; nothing was computed or written");
    return absl::OkStatus();
  }
  return status;
}

absl::StatusOr<std::shared_ptr<const ResidentFile>> Job::resident(const std::string& path,
                                                                  const ResidentFiles::Load& load) {
  auto file = resident_files_->get(path, load);
  if (!file.ok() || client_.has_value()) return file;
  absl::StatusOr<Client> client = connect();  // for describe_run(); the session is another job's
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  return file;
}

absl::StatusOr<Result> Job::run_on_file(const Session& session, const std::string& stage,
                                        const std::string& path,
                                        const std::function<Operation(const Source&)>& operation) {
  stages_.begin("read");
  absl::StatusOr<Array> file = read_file(path);
  stages_.end();
  if (!file.ok()) return file.status();
  if (static_cast<std::int64_t>(file->bytes().size()) <= max_encoded_bytes_)
    return run(session, stage, operation(EncodedImage{.file = file->bytes()}));
  const absl::StatusOr<Buffer> buffer = upload(session, *std::move(file));
  if (!buffer.ok()) return buffer.status();
  return run(session, stage, operation(EncodedImage{.buffer = &*buffer}));
}

absl::StatusOr<Array> Job::download(const Session& session, const Result& result, const std::string& name) {
  return download(session, result, name, nullptr);
}

absl::StatusOr<FileArray> Job::download_for(const std::string& path, const Session& session,
                                            const Result& result, const std::string& name) {
  FileArray downloaded;
  if (is_npy(path)) downloaded.file = std::make_unique<NpyWriter>(path);
  absl::StatusOr<Array> array = download(session, result, name, downloaded.file.get());
  if (!array.ok()) return array.status();
  downloaded.array = *std::move(array);
  return downloaded;
}

absl::StatusOr<Array> Job::download(const Session& session, const Result& result, const std::string& name,
                                    NpyWriter* file) {
  const Buffer* buffer = result.buffer(name);
  if (buffer == nullptr) {
    return absl::InternalError(
        absl::StrCat("the server's result has no array '", name, "'; use a cumulus of the server's version"));
  }
  stages_.begin("download");
  DownloadOptions options;
  options.call = call();
  options.progress = [this](std::int64_t done, std::int64_t total) { stages_.advance(done, total); };
  absl::StatusOr<Array> array = Array::allocate(buffer->type(), buffer->shape());
  if (!array.ok()) return array;
  if (file != nullptr) {
    file->begin(array->view());
    options.arrived = [file](std::int64_t begin, std::int64_t end) { file->take(begin, end); };
  }
  absl::Status came = session.download(*buffer, array->mutable_bytes(), options);
  if (file != nullptr) file->end();
  stages_.end();
  if (!came.ok()) return came;
  return array;
}

void Job::count(const Timings& timings) {
  server_times_.queue += timings.queue;
  server_times_.input += timings.input;
  server_times_.compute += timings.compute;
  server_times_.output += timings.output;
  server_times_.device = timings.device;
  server_times_.decode += timings.decode;
  server_times_.encoded_bytes += timings.encoded_bytes;
}

void Job::describe_run() {
  Report device;
  device.add("name", server_times_.device);
  const absl::StatusOr<Capabilities> capabilities = client_->capabilities(call());
  if (capabilities.ok()) {
    for (const DeviceInfo& info : capabilities->devices) {
      if (info.name != server_times_.device) continue;
      device.add("backend", info.backend);
      device.add("model", info.model);
    }
  }
  report_.add("device", std::move(device));
  report_.add("server", server_->name());
  Report server_seconds;
  server_seconds.add("queue", absl::ToDoubleSeconds(server_times_.queue));
  server_seconds.add("input", absl::ToDoubleSeconds(server_times_.input));
  server_seconds.add("compute", absl::ToDoubleSeconds(server_times_.compute));
  server_seconds.add("output", absl::ToDoubleSeconds(server_times_.output));
  if (server_times_.encoded_bytes > 0) {
    server_seconds.add("decode", absl::ToDoubleSeconds(server_times_.decode));
    report_.add("encoded_bytes", server_times_.encoded_bytes);
  }
  report_.add("server_seconds", std::move(server_seconds));
  report_.add("seconds", stages_.seconds());
}

}  // namespace cumulus::cli
