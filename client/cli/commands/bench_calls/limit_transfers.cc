#include "cli/commands/bench_calls/limit_transfers.h"

#include <absl/strings/str_cat.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cli/app/bench_rows.h"
#include "cli/commands/bench_calls/limit_rows.h"
#include "cli/commands/bench_calls/plain_socket.h"
#include "cumulus/v1/server.pb.h"
#include "library/connection.h"

namespace cumulus::cli {
namespace {

/// Whether this process gets memory that the server shares.
absl::StatusOr<bool> shares_memory(Job& job) {
  const absl::StatusOr<std::string> target = job.target();
  if (!target.ok()) return target.status();
  const auto connection = Connection::open(*target, job.connect_options());
  if (!connection.ok()) return connection.status();
  const auto capabilities = (*connection)
                                ->call_and_wait<v1::Capabilities>("/cumulus.v1.Server/GetCapabilities",
                                                                  v1::GetCapabilitiesRequest(), job.call());
  if (!capabilities.ok()) return capabilities.status();
  (*connection)->take_capabilities(*capabilities);
  return (*connection)->shared_memory().take_ring() != nullptr;
}

/// The transfers of one image.
class ImageTransfers {
 public:
  ImageTransfers(const Job& job, const Session& session, Array image, Array back)
      : job_(job), session_(session), image_(std::move(image)), back_(std::move(back)) {}

  /// 0 connections: as the library chooses.
  Measured upload(int connections) { return upload(image_, connections); }
  Measured download(int connections) { return download(back_, connections); }

  Measured upload_shared() {
    absl::StatusOr<Array> shared = session_.allocate_shared(image_.type(), image_.shape());
    if (!shared.ok()) return shared.status();
    std::memcpy(shared->mutable_bytes().data(), bytes().data(), bytes().size());
    return upload(*shared, 0);
  }
  Measured download_shared() {
    absl::StatusOr<Array> shared = session_.allocate_shared(image_.type(), image_.shape());
    if (!shared.ok()) return shared.status();
    return download(*shared, 0);
  }
  Measured copy() {
    return timed([&] {
      std::memcpy(back_.mutable_bytes().data(), bytes().data(), bytes().size());
      return absl::OkStatus();
    });
  }
  std::span<const std::byte> bytes() const { return image_.bytes(); }

 private:
  Measured upload(const Array& array, int connections) {
    UploadOptions options;
    options.call = job_.call();
    options.connections = connections;
    return timed([&] {
      absl::StatusOr<Buffer> uploaded = session_.upload(array.view(), options);
      if (!uploaded.ok()) return uploaded.status();
      buffer_ = *std::move(uploaded);
      return absl::OkStatus();
    });
  }
  Measured download(Array& array, int connections) {
    DownloadOptions options;
    options.call = job_.call();
    options.connections = connections;
    return timed([&] { return session_.download(*buffer_, array.mutable_bytes(), options); });
  }

  const Job& job_;
  const Session& session_;
  const Array image_;
  Array back_;
  std::optional<Buffer> buffer_;  // of the last upload
};

struct Pair {
  std::string what;
  Measure ours;
  std::string limit;
  Measure least;
};

std::vector<Pair> pairs_of(ImageTransfers& image, bool shared) {
  const Measure socket = [&image] { return move_through_sockets(image.bytes(), 1); };
  const std::string megabytes = absl::StrCat(image.bytes().size() >> 20, " MiB");
  const std::string one = "a plain Unix socket";
  std::vector<Pair> pairs = {
      {"upload " + megabytes, [&image] { return image.upload(0); }, one, socket},
      {"download " + megabytes, [&image] { return image.download(0); }, one, socket},
      {"upload " + megabytes + ", one connection", [&image] { return image.upload(1); }, one, socket},
      {"download " + megabytes + ", one connection", [&image] { return image.download(1); }, one, socket}};
  constexpr int kMany = 4;
  const Measure sockets = [&image] { return move_through_sockets(image.bytes(), kMany); };
  const std::string many = "four plain Unix sockets";
  pairs.push_back({"upload " + megabytes + ", four connections", [&image] { return image.upload(kMany); },
                   many, sockets});
  pairs.push_back({"download " + megabytes + ", four connections", [&image] { return image.download(kMany); },
                   many, sockets});
  if (!shared) return pairs;
  const Measure copy = [&image] { return image.copy(); };
  pairs.push_back({"upload a shared array of " + megabytes, [&image] { return image.upload_shared(); },
                   "a copy of its memory", copy});
  pairs.push_back({"download " + megabytes + " into a shared array",
                   [&image] { return image.download_shared(); }, "a copy of its memory", copy});
  return pairs;
}

}  // namespace

absl::Status add_transfer_limits(Job& job, const LimitOptions& options, std::vector<Report>& rows) {
  const absl::StatusOr<bool> shared = shares_memory(job);
  if (!shared.ok()) return shared.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  absl::StatusOr<Array> image = bench_image(options.size);
  if (!image.ok()) return image.status();
  absl::StatusOr<Array> back = Array::allocate(image->type(), image->shape());
  if (!back.ok()) return back.status();
  ImageTransfers transfers(job, *session, *std::move(image), *std::move(back));
  for (const Pair& pair : pairs_of(transfers, *shared)) {
    const auto times = in_turns(options.repeat, pair.ours, pair.least);
    if (!times.ok()) return times.status();
    rows.push_back(limit_row(pair.what, times->first, pair.limit, times->second));
  }
  return absl::OkStatus();
}

}  // namespace cumulus::cli
