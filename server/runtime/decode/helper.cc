#include "server/runtime/decode/helper.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/decode/helper_process.h"

namespace cumulus::server {

using decoding::v1::Order;
using decoding::v1::Reply;

absl::StatusOr<std::shared_ptr<DecodeHelper>> DecodeHelper::start() {
  absl::StatusOr<std::pair<Channel, Channel>> ends = Channel::pair();
  if (!ends.ok()) return ends.status();
  const pid_t id = ::fork();
  if (id < 0) return absl::InternalError(concat("cannot start the image decoder: ", std::strerror(errno)));
  if (id == 0) {
    ends->first.close();
    run_decode_helper(std::move(ends->second));
  }
  return std::shared_ptr<DecodeHelper>(new DecodeHelper(std::move(ends->first), id));
}

DecodeHelper::~DecodeHelper() {
  channel_.close();  // the helper's sign to end
  ::waitpid(id_, nullptr, 0);
}

Reply DecodeHelper::ask(const Order& order, const Descriptor& file) {
  const std::lock_guard lock(mutex_);
  Reply reply;
  if (!channel_.send(order, file) || !channel_.receive(reply))
    reply.set_problem("its image decoder has ended; restart the server");
  return reply;
}

absl::StatusOr<DecodeHelper::Worker> DecodeHelper::start_worker(const std::string& reader,
                                                                const Bounds& bounds) {
  absl::StatusOr<std::pair<Channel, Channel>> ends = Channel::pair();
  if (!ends.ok()) return ends.status();
  Order order;
  order.set_kind(Order::START);
  order.set_reader(reader);
  order.set_bytes(bounds.working_bytes);
  order.set_processor_milliseconds(absl::ToInt64Milliseconds(bounds.processor_time));
  const Reply reply = ask(order, ends->second.socket());
  if (!reply.problem().empty()) return absl::UnimplementedError(reply.problem());
  return Worker{reply.worker(), std::move(ends->first)};
}

absl::Status DecodeHelper::raise_memory(const Worker& worker, std::size_t bytes) {
  Order order;
  order.set_kind(Order::RAISE_MEMORY);
  order.set_worker(worker.id);
  order.set_bytes(bytes);
  const Reply reply = ask(order);
  return reply.problem().empty() ? absl::OkStatus() : absl::InternalError(reply.problem());
}

void DecodeHelper::dismiss_worker(const Worker& worker) {
  Order order;
  order.set_kind(Order::DISMISS);
  order.set_worker(worker.id);
  ask(order);
}

int DecodeHelper::end_worker(const Worker& worker) {
  Order order;
  order.set_kind(Order::END);
  order.set_worker(worker.id);
  return ask(order).wait_status();
}

}  // namespace cumulus::server
