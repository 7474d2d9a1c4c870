// cumulus_transfer_bench: how fast the client library uploads to and downloads from a server over loopback,
// checksums and all, without and with TLS, and through shared memory, as a ratio to a bare gRPC stream of the
// same messages. All take turns in one run. Exits with 1 where what came back is not what was sent.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/service/bare_stream.h"
#include "bench/service/local_server.h"
#include "bench/service/turns.h"
#include "cumulus/client.h"
#include "tests/support/certificates.h"

namespace cumulus::bench {
namespace {

/// Files of an authority, and of a certificate of 127.0.0.1 that it issued.
class TlsFilesOfTheRun {
 public:
  TlsFilesOfTheRun() {
    std::string name = (std::filesystem::temp_directory_path() / "cumulus-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + name);
    folder_ = name;
    testing::write_text(folder_ / "ca.pem", authority_.certificate());
    testing::write_text(folder_ / "server.pem", server_.certificate());
    testing::write_text(folder_ / "server.key", server_.key());
  }
  ~TlsFilesOfTheRun() { std::filesystem::remove_all(folder_); }
  TlsFilesOfTheRun(const TlsFilesOfTheRun&) = delete;
  TlsFilesOfTheRun& operator=(const TlsFilesOfTheRun&) = delete;

  std::shared_ptr<server::Certificates> server() const {
    return value_or_throw(server::Certificates::load({folder_ / "server.pem", folder_ / "server.key", ""}),
                          "TLS");
  }
  ConnectOptions client() const {
    ConnectOptions options;
    options.shared_memory = false;
    options.credentials = Credentials{.tls_ca = folder_ / "ca.pem"};
    return options;
  }
  std::shared_ptr<grpc::ServerCredentials> bare_server() const {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({server_.key(), server_.certificate()});
    return grpc::SslServerCredentials(options);
  }
  std::shared_ptr<grpc::ChannelCredentials> bare_client() const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = authority_.certificate();
    return grpc::SslCredentials(options);
  }

 private:
  const testing::TestCertificate authority_{"authority"};
  const testing::TestCertificate server_{"server", "IP:127.0.0.1", &authority_};
  std::filesystem::path folder_;
};

/// A client of one server with a buffer that lies there.
class Transfers {
 public:
  Transfers(const std::string& address, const ConnectOptions& options, const ArrayView& array)
      : client_(value_or_throw(Client::connect(address, options), "connect")),
        session_(value_or_throw(client_.create_session(), "session")),
        array_(array),
        resident_(value_or_throw(session_.upload(array), "upload")) {}

  /// 0 connections: as the library chooses.
  void upload(int connections = 0) const {
    UploadOptions options;
    options.connections = connections;
    value_or_throw(session_.upload(array_, options), "upload");
  }
  /// An array that lies in memory that the server shares, with the same elements.
  Array shared_array() const {
    Array shared = value_or_throw(session_.allocate_shared(array_.type(), array_.shape()), "shared array");
    std::memcpy(shared.mutable_bytes().data(), array_.bytes().data(), array_.bytes().size());
    return shared;
  }
  void upload(const Array& array) const { value_or_throw(session_.upload(array.view()), "upload"); }
  void download(std::span<std::byte> into, int connections = 0) const {
    DownloadOptions options;
    options.connections = connections;
    if (const absl::Status status = session_.download(resident_, into, options); !status.ok())
      throw std::runtime_error("download: " + status.ToString());
  }

 private:
  const Client client_;
  const Session session_;
  const ArrayView array_;
  const Buffer resident_;
};

double faults_per_mebibyte(const Subject& subject, std::size_t bytes) {
  return subject.median_page_faults() * static_cast<double>(std::size_t{1} << 20) /
         static_cast<double>(bytes);
}

std::vector<std::string> rows_of(const std::vector<Subject>& subjects, std::size_t bytes) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const Subject& subject = subjects[i];
    rows.push_back(json_field("name", subject.name) + ", " +
                   json_field("rounds", static_cast<double>(subject.seconds.size())) + ", " +
                   json_field("median_seconds", subject.median_seconds()) + ", " +
                   json_field("median_cpu_seconds", subject.median_cpu_seconds()) + ", " +
                   json_field("page_faults_per_mebibyte", faults_per_mebibyte(subject, bytes)) + ", " +
                   json_field("ratio_to_bare", ratio(subject, subjects[i % 2])));
  }
  return rows;
}

void print(const std::vector<Subject>& subjects, std::size_t bytes) {
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const Subject& subject = subjects[i];
    std::printf(
        "%-16s %8.4f s %8.2f GB/s %6.2f CPU s/GiB %7.1f page faults/MiB  ratio to bare %5.2f\n",
        subject.name.c_str(), subject.median_seconds(), subject.gigabytes_per_second(bytes),
        subject.median_cpu_seconds() * static_cast<double>(std::size_t{1} << 30) / static_cast<double>(bytes),
        faults_per_mebibyte(subject, bytes), ratio(subject, subjects[i % 2]));
  }
}

struct Where {
  std::string backend = "auto";
  std::string daemon = {};  // of another process; empty: a server of this one
};

int measure(const TransferArguments& arguments, const Where& where) {
  const std::size_t bytes = arguments.bytes();
  const TlsFilesOfTheRun tls_files;
  const LocalServer server(where.backend);
  const LocalServer tls_server(where.backend, tls_files.server());
  const std::string& address = where.daemon.empty() ? server.address() : where.daemon;
  const BareServer bare_server(server::kMaxChunkBytes);
  BareClient bare(bare_server.address(), server::kMaxChunkBytes);
  const BareServer bare_tls_server(server::kMaxChunkBytes, tls_files.bare_server());
  BareClient bare_tls(bare_tls_server.address(), server::kMaxChunkBytes, tls_files.bare_client());
  const std::vector<std::uint8_t> sent = random_bytes(bytes);
  std::vector<std::byte> received(bytes);
  const ArrayView array{std::span<const std::uint8_t>(sent), {static_cast<std::int64_t>(bytes)}};
  ConnectOptions plain_options;
  plain_options.credentials = Credentials();
  plain_options.shared_memory = false;
  const Transfers plain(address, plain_options, array);
  plain_options.shared_memory = true;
  const Transfers shared(address, plain_options, array);
  const Transfers tls(tls_server.address(), tls_files.client(), array);
  std::optional<Array> born_shared;
  Array filled_shared = shared.shared_array();
  std::vector<Subject> subjects = {
      {"bare upload", [&] { bare.upload(bytes); }},
      {"bare download", [&] { bare.download(bytes); }},
      {"upload", [&] { plain.upload(); }},
      {"download", [&] { plain.download(received); }},
      {"upload, one", [&] { plain.upload(1); }},
      {"download, one", [&] { plain.download(received, 1); }},
      {"upload, TLS", [&] { tls.upload(); }},
      {"download, TLS", [&] { tls.download(received); }},
      {"bare up, TLS", [&] { bare_tls.upload(bytes); }},
      {"bare down, TLS", [&] { bare_tls.download(bytes); }},
      {"upload, shared", [&] { shared.upload(); }},
      {"download, shared", [&] { shared.download(received); }},
      {"of a region", [&] { shared.upload(*born_shared); }, [&] { born_shared = shared.shared_array(); }},
      {"into a region", [&] { shared.download(filled_shared.mutable_bytes()); },
       [&] { std::memset(filled_shared.mutable_bytes().data(), 0, bytes); }},
      {"memcpy", [&] { std::memcpy(received.data(), sent.data(), bytes); }},
  };
  take_turns(subjects, arguments.rounds);

  std::printf("%s, %zu MiB over loopback, %d rounds, medians\n", server.description().c_str(),
              arguments.mebibytes, arguments.rounds);
  print(subjects, bytes);
  write_rows(arguments, json_field("device", server.description()), rows_of(subjects, bytes));
  return came_back({received, filled_shared.bytes()}, sent);
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures uploads and downloads against a bare gRPC stream, in one interleaved run.",
               "cumulus_transfer_bench"};
  cumulus::bench::Where where;
  cumulus::bench::add_backend_option(app, where.backend);
  app.add_option(
      "--server", where.daemon,
      "HOST:PORT or unix:PATH of a cumulusd, for the rows without TLS; without, a server of this process");
  cumulus::bench::TransferArguments arguments;
  return cumulus::bench::run_program(app, argc, argv, arguments,
                                     [&] { return cumulus::bench::measure(arguments, where); });
}
