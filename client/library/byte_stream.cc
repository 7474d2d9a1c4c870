#include "library/byte_stream.h"

#include "proto/steady_time.h"

namespace cumulus {

ByteStream::ByteStream(Connection& connection, int lane, const std::string& method, const CallContext& terms,
                       absl::Time deadline, const Cancellation& cancellation)
    : context_(std::make_shared<grpc::ClientContext>()) {
  connection.prepare(*context_);
  context_->set_deadline(absl::ToChronoTime(on_the_clock(deadline)));
  terms.write(*context_);
  scope_ = CancellationScope(cancellation, [context = context_] { context->TryCancel(); });
  stream_ = connection.stub(lane).PrepareCall(context_.get(), method, &queue_);
  stream_->StartCall(nullptr);
  wait();  // a call that could not start fails its next operation too
}

ByteStream::~ByteStream() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void ByteStream::start_write(const grpc::ByteBuffer& message, bool last) {
  grpc::WriteOptions options;
  if (last) options.set_last_message();
  stream_->Write(message, options, nullptr);
}

void ByteStream::start_read(grpc::ByteBuffer& message) { stream_->Read(&message, nullptr); }

bool ByteStream::wait() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

void ByteStream::cancel() { context_->TryCancel(); }

absl::Status ByteStream::finish() {
  grpc::Status status;
  stream_->Finish(&status, nullptr);
  wait();
  return wire::status_from_grpc(status);
}

}  // namespace cumulus
