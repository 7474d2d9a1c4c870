// cumulus_streams_bench: what uploads to and downloads from a daemon gain by several connections, over
// loopback TCP and over a Unix socket, checksums and all, as a part of what plain sockets move. All take
// turns in one run. Exits with 1 where what came back is not what was sent.
//
//   cumulusd --listen 127.0.0.1:50651 --listen unix:/tmp/cumulus.socket &
//   cumulus_streams_bench --tcp 127.0.0.1:50651 --unix unix:/tmp/cumulus.socket
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/service/plain_sockets.h"
#include "bench/service/turns.h"
#include "cumulus/client.h"

namespace cumulus::bench {
namespace {

struct Addresses {
  std::string tcp;
  std::string local;
};

Client connect(const std::string& address) {
  ConnectOptions options;
  options.credentials = Credentials();
  return value_or_throw(Client::connect(address, options), "connect to " + address);
}

/// A client with a buffer on the server, which is what it downloads.
class Transfers {
 public:
  Transfers(const std::string& address, std::span<const std::uint8_t> bytes)
      : client_(connect(address)),
        session_(value_or_throw(client_.create_session(), "session")),
        array_{bytes, {static_cast<std::int64_t>(bytes.size())}},
        resident_(value_or_throw(session_.upload(array_), "upload")) {}

  void upload(int connections) const {
    UploadOptions options;
    options.connections = connections;
    value_or_throw(session_.upload(array_, options), "upload");
  }
  void download(std::span<std::byte> into, int connections) const {
    DownloadOptions options;
    options.connections = connections;
    const absl::Status status = session_.download(resident_, into, options);
    if (!status.ok()) throw std::runtime_error("download: " + status.ToString());
  }

 private:
  const Client client_;
  const Session session_;
  const ArrayView array_;
  const Buffer resident_;
};

/// Clients with a connection and a part of the bytes each, which move at the same time.
class ManyClients {
 public:
  ManyClients(std::size_t count, const std::string& address, std::span<const std::uint8_t> sent,
              std::span<std::byte> received)
      : part_(sent.size() / count), received_(received) {
    for (std::size_t i = 0; i < count; ++i)
      clients_.push_back(std::make_unique<Transfers>(address, sent.subspan(i * part_, part_)));
  }

  void upload() const {
    at_once([](const Transfers& client, std::size_t) { client.upload(1); });
  }
  void download() const {
    at_once([this](const Transfers& client, std::size_t i) {
      client.download(received_.subspan(i * part_, part_), 1);
    });
  }

 private:
  void at_once(const std::function<void(const Transfers&, std::size_t)>& work) const {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < clients_.size(); ++i) threads.emplace_back([&, i] { work(*clients_[i], i); });
    for (std::thread& thread : threads) thread.join();
  }

  const std::size_t part_;
  const std::span<std::byte> received_;
  std::vector<std::unique_ptr<Transfers>> clients_;
};

enum class Way { kUp, kDown };
constexpr std::size_t kWays = 2;

/// The subjects of a run: of each name one for each way, the one after the other.
class BothWays {
 public:
  void add(const std::string& name, const std::function<void(Way)>& run) {
    for (const Way way : {Way::kUp, Way::kDown}) subjects_.push_back({name, [run, way] { run(way); }});
  }
  std::vector<Subject>& subjects() { return subjects_; }

  std::size_t count() const { return subjects_.size() / kWays; }
  const std::string& name(std::size_t i) const { return of(i, Way::kUp).name; }
  double rate(std::size_t i, Way way, std::size_t bytes) const {
    return of(i, way).gigabytes_per_second(bytes);
  }
  /// To the first.
  double part(std::size_t i, Way way) const { return ratio(of(i, way), of(0, way)); }

 private:
  const Subject& of(std::size_t i, Way way) const {
    return subjects_[kWays * i + static_cast<std::size_t>(way)];
  }

  std::vector<Subject> subjects_;
};

std::vector<std::string> rows_of(const BothWays& measured, std::size_t bytes) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < measured.count(); ++i) {
    std::string& row = rows.emplace_back(json_field("name", measured.name(i)));
    for (const Way way : {Way::kUp, Way::kDown}) {
      const std::string name = way == Way::kUp ? "up" : "down";
      row += ", " + json_field(name + "_gb_s", measured.rate(i, way, bytes)) + ", " +
             json_field(name + "_to_plain", measured.part(i, way));
    }
  }
  return rows;
}

void print(const BothWays& measured, std::size_t bytes) {
  std::printf("%-26s %8s %8s  of one plain TCP connection: %4s %5s\n", "GB/s", "up", "down", "up", "down");
  for (std::size_t i = 0; i < measured.count(); ++i) {
    std::printf("%-26s %8.2f %8.2f %33.2f %5.2f\n", measured.name(i).c_str(),
                measured.rate(i, Way::kUp, bytes), measured.rate(i, Way::kDown, bytes),
                measured.part(i, Way::kUp), measured.part(i, Way::kDown));
  }
}

int measure(const TransferArguments& arguments, const Addresses& addresses) {
  const PlainServer plain_server;
  const std::size_t bytes = arguments.bytes();
  const std::vector<std::uint8_t> sent = random_bytes(bytes);
  std::vector<std::byte> received(bytes);
  BothWays measured;
  std::vector<std::shared_ptr<const void>> kept;
  const auto add = [&](const std::string& name, auto subject, const auto& run) {
    kept.push_back(subject);
    measured.add(name, [subject, run](Way way) { run(*subject, way); });
  };
  const auto run_plain = [&](const PlainClient& plain, Way way) {
    way == Way::kUp ? plain.upload(std::as_bytes(std::span(sent))) : plain.download(received);
  };
  for (const int connections : {1, 2, 4, 8}) {
    add("plain TCP, " + std::to_string(connections),
        std::make_shared<PlainClient>(plain_server, PlainClient::Over::kTcp, connections), run_plain);
  }
  for (const int connections : {1, 4}) {
    add("plain Unix, " + std::to_string(connections),
        std::make_shared<PlainClient>(plain_server, PlainClient::Over::kUnix, connections), run_plain);
  }
  const auto add_transfers = [&](const std::string& name, const std::string& address,
                                 std::initializer_list<int> counts) {
    const auto transfers = std::make_shared<Transfers>(address, sent);
    for (const int connections : counts) {
      add(name + ", " + std::to_string(connections), transfers,
          [&, connections](const Transfers& it, Way way) {
            way == Way::kUp ? it.upload(connections) : it.download(received, connections);
          });
    }
  };
  add_transfers("TCP", addresses.tcp, {1, 2, 4, 8});
  add_transfers("Unix", addresses.local, {1, 2, 4});
  for (const std::size_t count : {std::size_t{4}, std::size_t{8}}) {
    add(std::to_string(count) + " clients, TCP",
        std::make_shared<ManyClients>(count, addresses.tcp, sent, received),
        [](const ManyClients& clients, Way way) { way == Way::kUp ? clients.upload() : clients.download(); });
  }
  std::fill(received.begin(), received.end(), std::byte{0});
  take_turns(measured.subjects(), arguments.rounds);
  print(measured, bytes);
  write_rows(arguments, json_field("cores", std::thread::hardware_concurrency()), rows_of(measured, bytes));
  return came_back({received}, sent);
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures transfers over several connections to a daemon against plain sockets, in turns.",
               "cumulus_streams_bench"};
  cumulus::bench::Addresses addresses;
  app.add_option("--tcp", addresses.tcp, "Where the daemon listens: 127.0.0.1:PORT")->required();
  app.add_option("--unix", addresses.local, "and: unix:PATH")->required();
  cumulus::bench::TransferArguments arguments;
  return cumulus::bench::run_program(app, argc, argv, arguments,
                                     [&] { return cumulus::bench::measure(arguments, addresses); });
}
