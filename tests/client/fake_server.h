#pragma once

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cumulus/client.h"
#include "cumulus/v1/operations.grpc.pb.h"
#include "cumulus/v1/server.grpc.pb.h"
#include "cumulus/v1/sessions.grpc.pb.h"
#include "cumulus/v1/transfer.grpc.pb.h"
#include "proto/checksums.h"
#include "server/pipeline/errors.h"
#include "tests/support/eventually.h"
#include "tests/support/grpc_engine.h"
#include "tests/support/temporary_folder.h"

namespace cumulus::testing {

/// What a client test makes the server do wrong, and what it saw. Counts are of calls.
struct Script {
  std::atomic<int> break_uploads = 0;      // so many uploads end UNAVAILABLE after their first chunk
  std::atomic<int> break_downloads = 0;    // so many downloads end UNAVAILABLE after their first chunk
  std::atomic<int> break_deletions = 0;    // so many deletions of a buffer end UNAVAILABLE, one of two done
  std::atomic<bool> flip_a_bit = false;    // in the second chunk of every download
  std::atomic<bool> misplace = false;      // the second chunk of every download says another place
  std::atomic<bool> cut_short = false;     // every download ends, without an error, before its last chunk
  std::atomic<int> turn_away = 0;          // so many operations answer UNAVAILABLE with RetryInfo
  std::atomic<int> turn_away_uploads = 0;  // and so many uploads
  std::atomic<int> retry_after_milliseconds = 20;  // which that says
  std::atomic<int> fail_renewals = 0;              // so many renewals of a lease answer INTERNAL
  std::atomic<bool> stall = false;                 // operations wait until they are cancelled
  std::string endpoint = {};                       // where sessions say that they are; before calls come

  std::atomic<int> uploads = 0;
  std::atomic<int> downloads = 0;
  std::atomic<int> operations = 0;
  std::atomic<int> renewals = 0;
  std::atomic<int> open_sessions = 0;
  std::atomic<std::int64_t> asked_ttl_seconds = 0;  // of the last session
  std::atomic<bool> saw_cancellation = false;
};

inline grpc::Status turned_away(const Script& script) {
  return server::to_grpc(server::unavailable("QUEUE_FULL", "the queue is full",
                                             absl::Milliseconds(script.retry_after_milliseconds.load())));
}

/// The transfer service, as its contract has it, over a map of byte strings.
class FakeTransfer : public v1::BufferTransfer::Service {
 public:
  explicit FakeTransfer(Script& script) : script_(script) {}

  grpc::Status WriteBuffer(grpc::ServerContext*, grpc::ServerReader<v1::WriteBufferRequest>* reader,
                           v1::Buffer* response) override {
    ++script_.uploads;
    if (script_.turn_away_uploads > 0 && script_.turn_away_uploads-- > 0) return turned_away(script_);
    v1::WriteBufferRequest chunk;
    v1::WriteSpec spec;
    std::string bytes;
    bool finished = false;
    while (reader->Read(&chunk)) {
      if (chunk.has_spec()) spec = chunk.spec();
      if (chunk.write_offset() != static_cast<std::int64_t>(bytes.size())) return bad("write_offset");
      if (chunk.has_crc32c() != !chunk.data().empty()) return bad("crc32c is there exactly with data");
      if (chunk.crc32c() != (chunk.data().empty() ? 0 : crc32c(std::as_bytes(std::span(chunk.data())))))
        return bad("crc32c");
      bytes += chunk.data();
      if (finished) return bad("finish_write came before");
      finished = chunk.finish_write();
      if (script_.break_uploads > 0 && script_.break_uploads-- > 0)
        return {grpc::StatusCode::UNAVAILABLE, "broken"};
    }
    if (!finished) return bad("finish_write");
    const std::lock_guard lock(mutex_);
    *response = add_locked(spec.session(), spec.spec(), bytes);
    return grpc::Status::OK;
  }

  grpc::Status ReadBuffer(grpc::ServerContext*, const v1::ReadBufferRequest* request,
                          grpc::ServerWriter<v1::ReadBufferResponse>* writer) override {
    constexpr std::size_t kChunk = 1000;
    const bool breaks = ++script_.downloads && script_.break_downloads > 0 && script_.break_downloads-- > 0;
    const std::string bytes = contents(request->name());
    std::size_t sent = 0;
    for (auto offset = static_cast<std::size_t>(request->read_offset()); offset < bytes.size();
         offset += kChunk) {
      v1::ReadBufferResponse chunk;
      chunk.set_offset(static_cast<std::int64_t>(offset));
      chunk.set_data(bytes.substr(offset, kChunk));
      chunk.set_crc32c(crc32c(std::as_bytes(std::span(chunk.data()))));
      if (script_.flip_a_bit && sent == 1) (*chunk.mutable_data())[5] ^= 1;
      if (script_.misplace && sent == 1) chunk.set_offset(chunk.offset() + 1);
      if (script_.cut_short && offset + kChunk >= bytes.size()) break;
      writer->Write(chunk);
      if (++sent == 1 && breaks) return {grpc::StatusCode::UNAVAILABLE, "broken"};
    }
    return grpc::Status::OK;
  }

  v1::Buffer add(const std::string& session, const v1::ArraySpec& spec, const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    return add_locked(session, spec, bytes);
  }
  void remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    buffers_.erase(name);
  }
  std::size_t buffer_count() {
    const std::lock_guard lock(mutex_);
    return buffers_.size();
  }
  std::string contents(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return buffers_[name];
  }

 private:
  static grpc::Status bad(const std::string& what) { return {grpc::StatusCode::INVALID_ARGUMENT, what}; }

  v1::Buffer add_locked(const std::string& session, const v1::ArraySpec& spec, const std::string& bytes) {
    v1::Buffer buffer;
    buffer.set_name(absl::StrCat(session, "/buffers/", ++next_));
    *buffer.mutable_spec() = spec;
    buffer.set_size_bytes(static_cast<std::int64_t>(bytes.size()));
    buffers_[buffer.name()] = bytes;
    return buffer;
  }

  Script& script_;
  std::mutex mutex_;
  int next_ = 0;
  std::map<std::string, std::string> buffers_;
};

class FakeSessions : public v1::Sessions::Service {
 public:
  FakeSessions(Script& script, FakeTransfer& transfer) : script_(script), transfer_(transfer) {}

  grpc::Status CreateSession(grpc::ServerContext*, const v1::CreateSessionRequest* request,
                             v1::Session* response) override {
    ++script_.open_sessions;
    script_.asked_ttl_seconds = request->ttl().seconds();
    response->set_name("sessions/" + request->session_id());
    response->set_device("cpu");
    response->set_endpoint(script_.endpoint);
    return grpc::Status::OK;
  }
  grpc::Status GetSession(grpc::ServerContext*, const v1::GetSessionRequest* request,
                          v1::Session* response) override {
    ++script_.renewals;
    if (script_.fail_renewals > 0 && script_.fail_renewals-- > 0)
      return {grpc::StatusCode::INTERNAL, "failed"};
    response->set_name(request->name());
    return grpc::Status::OK;
  }
  grpc::Status DeleteSession(grpc::ServerContext*, const v1::DeleteSessionRequest*,
                             google::protobuf::Empty*) override {
    --script_.open_sessions;
    return grpc::Status::OK;
  }
  grpc::Status DeleteBuffer(grpc::ServerContext*, const v1::DeleteBufferRequest* request,
                            google::protobuf::Empty*) override {
    const int to_break = script_.break_deletions;
    if (to_break > 0) --script_.break_deletions;
    if (to_break % 2 == 0) transfer_.remove(request->name());
    if (to_break > 0) return {grpc::StatusCode::UNAVAILABLE, "broken"};
    return grpc::Status::OK;
  }

 private:
  Script& script_;
  FakeTransfer& transfer_;
};

/// BuildSummedAreaTable answers its input unchanged, inline or as a buffer; an input without bytes is a
/// bad field.
class FakeOperations : public v1::Operations::Service {
 public:
  FakeOperations(Script& script, FakeTransfer& transfer) : script_(script), transfer_(transfer) {}

  grpc::Status BuildSummedAreaTable(grpc::ServerContext* context,
                                    const v1::BuildSummedAreaTableRequest* request,
                                    v1::OperationResult* response) override {
    ++script_.operations;
    if (script_.turn_away > 0 && script_.turn_away-- > 0) {
      return turned_away(script_);
    }
    while (script_.stall && !context->IsCancelled())
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    script_.saw_cancellation = context->IsCancelled();
    const v1::InlineArray& image = request->image().inline_array();
    if (image.data().empty() && !request->image().has_buffer()) {
      return server::to_grpc(
          server::bad_field("image.inline_array.data", "has no bytes; the shape wants some"));
    }
    v1::NamedArray& sums = *response->add_arrays();
    sums.set_name("sums");
    response->mutable_timings()->set_device("cpu");
    response->mutable_timings()->mutable_compute()->set_nanos(5'000'000);
    const bool is_inline =
        request->options().session().empty() || request->options().output().has_inline_array();
    if (is_inline) {
      *sums.mutable_inline_array() = image;
    } else {
      *sums.mutable_buffer() = transfer_.add(request->options().session(), image.spec(), image.data());
    }
    return grpc::Status::OK;
  }

 private:
  Script& script_;
  FakeTransfer& transfer_;
};

class FakeCapabilities : public v1::Server::Service {
 public:
  static constexpr std::int64_t kMaxTtlSeconds = 3600;

  grpc::Status GetCapabilities(grpc::ServerContext*, const v1::GetCapabilitiesRequest*,
                               v1::Capabilities* response) override {
    response->set_server_version("fake");
    response->mutable_max_ttl()->set_seconds(kMaxTtlSeconds);
    v1::DeviceInfo& device = *response->add_devices();
    device.set_name("cpu");
    device.set_backend("cpu");
    return grpc::Status::OK;
  }
};

/// The wire contract, over a Unix socket, with faults as scripted: for what a real server does not do on
/// demand.
class FakeServer {
 public:
  FakeServer() {
    keep_grpc_engine();
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target(), grpc::InsecureServerCredentials());
    builder.RegisterService(&capabilities_);
    builder.RegisterService(&sessions_);
    builder.RegisterService(&operations_);
    builder.RegisterService(&transfer);
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1)); }

  std::string target() const { return "unix:" + (folder_ / "socket"); }

  Client connect(const ConnectOptions& options = {}) const {
    absl::StatusOr<Client> client = Client::connect(target(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *client;
  }

  grpc::Server& server() { return *server_; }

  Script script;
  FakeTransfer transfer{script};

 private:
  TemporaryFolder folder_;
  FakeCapabilities capabilities_;
  FakeSessions sessions_{script, transfer};
  FakeOperations operations_{script, transfer};
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace cumulus::testing
