// cumulus_shared_memory_bench: what uploads and downloads through memory that client and server share take,
// from the caller's own memory and of arrays that were born shared, beside the copies of the same bytes that
// the device makes by itself (on a GPU between pinned memory and its own, on a CPU a memcpy), and beside a
// memcpy by one thread. All take turns in one run. Exits with 1 where what came back is not what was sent.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/service/local_server.h"
#include "bench/service/turns.h"
#include "cumulus/client.h"
#include "cumulus/v1/server.pb.h"
#include "cumulus/v1/sessions.pb.h"
#include "library/connection.h"
#include "library/shared_memory/ring_transfer.h"

namespace cumulus::bench {
namespace {

ConnectOptions local_options() {
  ConnectOptions options;
  options.credentials = Credentials();
  return options;
}

void require(const absl::Status& status, const std::string& what) {
  if (!status.ok()) throw std::runtime_error(what + ": " + status.ToString());
}

/// The copies that a device makes by itself, from and to memory that it is quickest with.
class DeviceCopies {
 public:
  DeviceCopies(server::Device& device, std::span<const std::uint8_t> bytes)
      : device_(device),
        staging_(device.allocate_staging(bytes.size())),
        memory_(device.allocate(bytes.size())) {
    std::memcpy(staging_.data(), bytes.data(), bytes.size());
    in();
  }

  void in() {
    wait([&](server::Done done) { device_.copy_in(staging(), memory_, 0, std::move(done)); });
  }
  void out() {
    wait([&](server::Done done) { device_.copy_out(memory_, 0, staging(), std::move(done)); });
  }

 private:
  std::span<std::byte> staging() const { return {staging_.data(), staging_.bytes()}; }
  template <class Copy>
  static void wait(const Copy& copy) {
    std::promise<absl::Status> copied;
    copy([&](absl::Status status) { copied.set_value(std::move(status)); });
    require(copied.get_future().get(), "copy");
  }

  server::Device& device_;
  const HostMemory staging_;
  const server::BufferMemory memory_;
};

/// Transfers of a session by a number of threads of the program's choice, which the library else chooses.
class RingTransfers {
 public:
  RingTransfers(const std::string& address, const Session& session, std::span<const std::uint8_t> sent)
      : connection_(value_or_throw(Connection::open(address, local_options()), "connect")),
        context_{session.name(), session.instance()},
        sent_(sent) {
    connection_->take_capabilities(
        value_or_throw(connection_->call_and_wait<v1::Capabilities>(
                           "/cumulus.v1.Server/GetCapabilities", v1::GetCapabilitiesRequest(), {}, context_),
                       "capabilities"));
    spec_.set_session(session.name());
    wire::encode_spec(ElementType::kUint8, {static_cast<std::int64_t>(sent.size())}, *spec_.mutable_spec());
  }

  void upload(int threads) {
    UploadOptions options;
    options.connections = threads;
    auto uploaded =
        write_through_ring(*connection_, context_, spec_, std::as_bytes(sent_), options, Checksum::kUnwanted);
    if (!uploaded.has_value()) throw std::runtime_error("upload: there is no shared memory");
    uploaded_ = value_or_throw(*std::move(uploaded), "upload").buffer.name();
  }
  /// Deletes what the last upload has brought.
  void forget() {
    if (uploaded_.empty()) return;
    v1::DeleteBufferRequest request;
    request.set_name(std::exchange(uploaded_, {}));
    require(connection_
                ->call_and_wait("/cumulus.v1.Sessions/DeleteBuffer", wire::serialize(request), {}, context_)
                .status(),
            "delete");
  }
  void download(const Buffer& buffer, std::span<std::byte> into, int threads) {
    DownloadOptions options;
    options.connections = threads;
    const auto read = read_through_ring(*connection_, context_, buffer.name(), into, options);
    if (!read.has_value()) throw std::runtime_error("download: there is no shared memory");
    require(*read, "download");
  }

 private:
  const std::shared_ptr<Connection> connection_;
  const CallContext context_;
  const std::span<const std::uint8_t> sent_;
  v1::WriteSpec spec_;
  std::string uploaded_;
};

/// Arrays of a session that lie in memory which the server shares.
class SharedArraysOfTheRun {
 public:
  SharedArraysOfTheRun(const Session& session, std::span<const std::uint8_t> sent)
      : session_(session), sent_(sent) {}

  void make() {
    array_.reset();
    array_ = value_or_throw(
        session_.allocate_shared(ElementType::kUint8, {static_cast<std::int64_t>(sent_.size())}), "array");
  }
  void make_filled() {
    uploaded_.reset();
    make();
    std::memcpy(array_->mutable_bytes().data(), sent_.data(), sent_.size());
  }
  void upload() { uploaded_ = value_or_throw(session_.upload(array_->view()), "upload"); }
  void download(const Buffer& buffer) {
    require(session_.download(buffer, array_->mutable_bytes()), "download");
  }
  std::span<const std::byte> bytes() const { return array_->bytes(); }
  /// What the last upload has brought.
  std::vector<std::uint8_t> on_the_server() const {
    return value_or_throw(session_.download<std::uint8_t>(*uploaded_), "download");
  }

 private:
  const Session& session_;
  const std::span<const std::uint8_t> sent_;
  std::optional<Array> array_;
  std::optional<Buffer> uploaded_;
};

/// A client that has just come, so that its first transfer has to have a ring made.
class Newcomer {
 public:
  explicit Newcomer(std::string address) : address_(std::move(address)) {}

  void come() {
    session_.reset();
    client_ = value_or_throw(Client::connect(address_, local_options()), "connect");
    session_ = value_or_throw(client_->create_session(), "session");
  }
  void upload(const ArrayView& array) { value_or_throw(session_->upload(array), "upload"); }

 private:
  const std::string address_;
  std::optional<Client> client_;
  std::optional<Session> session_;
};

bool goes_up(const Subject& subject) {
  return subject.name.starts_with("upload") || subject.name.ends_with(" in");
}

/// Copies in and out, and a memcpy, come first.
void report(const TransferArguments& arguments, const std::vector<Subject>& subjects,
            const std::string& device) {
  std::vector<std::string> rows;
  std::printf("%s, %zu MiB, %d rounds, medians\n%-32s %9s %8s %14s %9s\n", device.c_str(),
              arguments.mebibytes, arguments.rounds, "", "ms", "GB/s", "of the copy", "of memcpy");
  for (const Subject& subject : subjects) {
    const double of_copy = ratio(subject, subjects[goes_up(subject) ? 0 : 1]);
    const double of_memcpy = ratio(subject, subjects[2]);
    const double rate = subject.gigabytes_per_second(arguments.bytes());
    std::printf("%-32s %9.3f %8.2f %14.2f %9.2f\n", subject.name.c_str(), 1e3 * subject.median_seconds(),
                rate, of_copy, of_memcpy);
    rows.push_back(json_field("name", subject.name) + ", " +
                   json_field("rounds", static_cast<double>(subject.seconds.size())) + ", " +
                   json_field("median_seconds", subject.median_seconds()) + ", " +
                   json_field("median_cpu_seconds", subject.median_cpu_seconds()) + ", " +
                   json_field("gb_s", rate) + ", " + json_field("of_copy", of_copy) + ", " +
                   json_field("of_memcpy", of_memcpy));
  }
  write_rows(arguments, json_field("device", device), rows);
}

int measure(const TransferArguments& arguments, const std::string& backend, const std::string& listen) {
  const LocalServer server(backend, nullptr, listen);
  const std::vector<std::uint8_t> sent = random_bytes(arguments.bytes());
  std::vector<std::byte> received(sent.size());
  DeviceCopies copies(server.device(), sent);
  const Client client = value_or_throw(Client::connect(server.address(), local_options()), "connect");
  const Session session = value_or_throw(client.create_session(), "session");
  const ArrayView array{std::span<const std::uint8_t>(sent), {static_cast<std::int64_t>(sent.size())}};
  UploadOptions one_stream_up;
  one_stream_up.connections = 1;
  DownloadOptions one_stream_down;
  one_stream_down.connections = 1;
  const Buffer resident = value_or_throw(session.upload(array, one_stream_up), "upload");
  RingTransfers ring(server.address(), session, sent);
  SharedArraysOfTheRun born(session, sent);
  SharedArraysOfTheRun kept(session, sent);
  SharedArraysOfTheRun fresh(session, sent);
  Newcomer newcomer(server.address());
  kept.make();
  std::vector<Subject> subjects = {
      {"copy in", [&] { copies.in(); }},
      {"copy out", [&] { copies.out(); }},
      {"memcpy", [&] { std::memcpy(received.data(), sent.data(), sent.size()); }},
      {"upload, one stream", [&] { value_or_throw(session.upload(array, one_stream_up), "upload"); }},
      {"download, one stream",
       [&] { require(session.download(resident, received, one_stream_down), "download"); }},
      {"upload, shared array", [&] { born.upload(); }, [&] { born.make_filled(); }},
      {"download, shared array", [&] { kept.download(resident); }},
      {"download, new shared array", [&] { fresh.download(resident); }, [&] { fresh.make(); }},
      {"upload, first of a new client", [&] { newcomer.upload(array); }, [&] { newcomer.come(); }},
  };
  for (const int threads : {1, 2, 4}) {
    const std::string by = ", ring, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    subjects.push_back({"upload" + by, [&, threads] { ring.upload(threads); }, [&] { ring.forget(); }});
    subjects.push_back({"download" + by, [&, threads] { ring.download(resident, received, threads); }});
  }
  take_turns(subjects, arguments.rounds);
  report(arguments, subjects, server.description());
  const std::vector<std::uint8_t> uploaded = born.on_the_server();
  return came_back({received, kept.bytes(), fresh.bytes(), std::as_bytes(std::span(uploaded))}, sent);
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures transfers through shared memory against copies of the same bytes, in turns.",
               "cumulus_shared_memory_bench"};
  std::string backend = "auto";
  cumulus::bench::add_backend_option(app, backend);
  std::string listen = "127.0.0.1:0";
  app.add_option("--listen", listen, "Where the server is reached: 127.0.0.1:0, or unix:PATH")
      ->capture_default_str();
  cumulus::bench::TransferArguments arguments;
  return cumulus::bench::run_program(app, argc, argv, arguments,
                                     [&] { return cumulus::bench::measure(arguments, backend, listen); });
}
