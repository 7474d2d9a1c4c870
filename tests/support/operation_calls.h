#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test_server.h"

// A call of every RPC of cumulus.v1.Operations, of any size, on buffers of the test's server.

namespace cumulus::testing {

/// Buffers and calls of one session.
class CallMaker {
 public:
  using Call = std::function<grpc::Status(grpc::ClientContext&, v1::OperationResult&)>;

  CallMaker(TestServer& server, std::string session, v1::Priority priority = v1::PRIORITY_UNSPECIFIED)
      : server_(server), session_(std::move(session)), priority_(priority) {}

  TestServer& server() { return server_; }

  /// A resident buffer of `values`, put there without an upload.
  template <class T>
  std::string put(v1::ElementType type, std::vector<std::int64_t> shape, const std::vector<T>& values) {
    server::Device& device = *server_.slot().device;
    const auto session = server_.runtime.sessions.find_session(session_, {}).value();
    const std::size_t bytes = values.size() * sizeof(T);
    server::SessionStore::NewBuffer buffer;
    auto admission = server_.runtime.sessions.admit(device, session.get(), align_block(bytes));
    EXPECT_TRUE(admission.ok()) << admission.status();
    buffer.admission = *std::move(admission);
    buffer.memory = device.allocate(bytes);
    const auto* from = reinterpret_cast<const std::byte*>(values.data());
    std::promise<absl::Status> copied;
    device.copy_in({from, bytes}, buffer.memory, 0, [&](absl::Status status) { copied.set_value(status); });
    EXPECT_EQ(copied.get_future().get(), absl::OkStatus());
    buffer.head.assign(from, from + std::min(bytes, server::kHeadBytes));
    buffer.shape = {type, std::move(shape)};
    return (*server_.runtime.sessions.add_buffer(*session, std::move(buffer)))->name;
  }
  std::string put_bytes(std::vector<std::int64_t> shape) {
    std::vector<std::uint8_t> values(count_of(shape));
    std::minstd_rand random(1);
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random());
    return put(v1::UINT8, std::move(shape), values);
  }
  std::string put_floats(std::vector<std::int64_t> shape) {
    std::vector<float> values(count_of(shape));
    std::minstd_rand random(1);
    for (float& value : values) value = static_cast<float>(random() % 65536) / 65536;
    return put(v1::FLOAT32, std::move(shape), values);
  }

  /// A call of `Method`, whose outputs stay in the session for a moment.
  template <class Request>
  Call call(grpc::Status (v1::Operations::Stub::*method)(grpc::ClientContext*, const Request&,
                                                         v1::OperationResult*),
            Request request) {
    request.mutable_options()->set_session(session_);
    request.mutable_options()->set_priority(priority_);
    request.mutable_options()->mutable_output()->mutable_ttl()->set_nanos(1000000);
    return [this, method, request](grpc::ClientContext& context, v1::OperationResult& result) {
      return (server_.operations.get()->*method)(&context, request, &result);
    };
  }
  /// The buffers that a call leaves.
  template <class Request>
  std::map<std::string, std::string> results(grpc::Status (v1::Operations::Stub::*method)(
                                                 grpc::ClientContext*, const Request&, v1::OperationResult*),
                                             Request request) {
    request.mutable_options()->set_session(session_);
    v1::OperationResult result;
    grpc::ClientContext context;
    const grpc::Status status = (server_.operations.get()->*method)(&context, request, &result);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::map<std::string, std::string> buffers;
    for (const v1::NamedArray& array : result.arrays()) buffers[array.name()] = array.buffer().name();
    return buffers;
  }

 private:
  static std::size_t count_of(const std::vector<std::int64_t>& shape) {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    return count;
  }

  TestServer& server_;
  const std::string session_;
  const v1::Priority priority_;
};

/// A square of about so many elements.
inline std::vector<std::int64_t> square_of(std::int64_t elements) {
  std::int64_t side = 1;
  while ((side + 1) * (side + 1) <= elements) ++side;
  return {side, side};
}

inline std::string put_table(CallMaker& maker, std::int64_t side, v1::SamplingMethod method) {
  v1::BuildSamplingTableRequest build;
  build.mutable_weights()->set_buffer(maker.put_floats({side, side}));
  build.set_projection(v1::PLANE);
  build.set_method(method);
  return maker.results(&v1::Operations::Stub::BuildSamplingTable, build).at("table");
}

inline CallMaker::Call make_build_sampling_table(CallMaker& maker, std::int64_t elements) {
  v1::BuildSamplingTableRequest request;
  request.mutable_weights()->set_buffer(maker.put_floats(square_of(elements)));
  request.set_projection(v1::PLANE);
  return maker.call(&v1::Operations::Stub::BuildSamplingTable, request);
}

inline CallMaker::Call make_draw_samples(CallMaker& maker, std::int64_t elements) {
  v1::DrawSamplesRequest request;
  request.mutable_table()->set_buffer(put_table(maker, 64, v1::RADIX_FOREST));
  request.set_count(elements);
  return maker.call(&v1::Operations::Stub::DrawSamples, request);
}

inline CallMaker::Call make_evaluate_density(CallMaker& maker, std::int64_t elements) {
  v1::EvaluateDensityRequest request;
  request.mutable_table()->set_buffer(put_table(maker, 64, v1::RADIX_FOREST));
  request.mutable_points()->set_buffer(maker.put_floats({elements, 2}));
  return maker.call(&v1::Operations::Stub::EvaluateDensity, request);
}

inline CallMaker::Call make_build_summed_area_table(CallMaker& maker, std::int64_t elements) {
  v1::BuildSummedAreaTableRequest request;
  request.mutable_image()->set_buffer(maker.put_bytes(square_of(elements)));
  request.set_overflow(v1::WRAP_OVERFLOW);
  return maker.call(&v1::Operations::Stub::BuildSummedAreaTable, request);
}

inline CallMaker::Call make_sum_rectangles(CallMaker& maker, std::int64_t elements) {
  std::vector<std::int32_t> rectangles(static_cast<std::size_t>(4 * elements));
  std::minstd_rand random(2);
  for (std::int32_t& edge : rectangles) edge = static_cast<std::int32_t>(random() % 512);
  v1::SumRectanglesRequest request;
  request.mutable_sums()->set_buffer(maker.put_floats({512, 512}));
  request.mutable_rectangles()->set_buffer(maker.put(v1::INT32, {elements, 4}, rectangles));
  return maker.call(&v1::Operations::Stub::SumRectangles, request);
}

inline CallMaker::Call make_filter_box(CallMaker& maker, std::int64_t elements) {
  v1::FilterBoxRequest request;
  request.mutable_image()->set_buffer(maker.put_bytes(square_of(elements)));
  request.set_radius(9);
  return maker.call(&v1::Operations::Stub::FilterBox, request);
}

inline CallMaker::Call make_build_kd_tree(CallMaker& maker, std::int64_t elements) {
  v1::BuildKdTreeRequest request;
  request.mutable_points()->set_buffer(maker.put_floats({elements, 3}));
  return maker.call(&v1::Operations::Stub::BuildKdTree, request);
}

/// For calls of some seconds: one thread, and room for their arrays.
inline server::Configuration server_of_long_calls() {
  server::Configuration configuration = TestServer::configuration();
  configuration.devices.cpu_threads = 1;
  configuration.devices.cpu_memory_bytes = std::size_t{1} << 30;
  return configuration;
}

/// The nearest neighbours of so many queries, in a tree of as many points, 2^18 at most; leaf_size 0: the
/// default.
inline CallMaker::Call make_find_neighbors(CallMaker& maker, std::int64_t elements, std::int64_t leaf_size) {
  v1::BuildKdTreeRequest build;
  build.set_leaf_size(leaf_size);
  build.mutable_points()->set_buffer(maker.put_floats({std::min<std::int64_t>(elements, 1 << 18), 3}));
  const auto tree = maker.results(&v1::Operations::Stub::BuildKdTree, build);
  v1::FindNeighborsRequest request;
  request.mutable_tree()->mutable_points()->set_buffer(tree.at("points"));
  request.mutable_tree()->mutable_idx_array()->set_buffer(tree.at("idx_array"));
  request.mutable_tree()->mutable_node_data()->set_buffer(tree.at("node_data"));
  request.mutable_tree()->mutable_node_bounds()->set_buffer(tree.at("node_bounds"));
  request.mutable_queries()->set_buffer(maker.put_floats({elements, 3}));
  request.set_nearest(8);
  return maker.call(&v1::Operations::Stub::FindNeighbors, request);
}

inline CallMaker::Call make_find_neighbors(CallMaker& maker, std::int64_t elements) {
  return make_find_neighbors(maker, elements, 0);
}

inline CallMaker::Call make_match_brackets(CallMaker& maker, std::int64_t elements) {
  std::vector<std::uint8_t> text(static_cast<std::size_t>(elements / 2 * 2), '(');
  for (std::size_t i = 1; i < text.size(); i += 2) text[i] = ')';
  v1::MatchBracketsRequest request;
  request.mutable_text()->set_buffer(maker.put(v1::UINT8, {elements / 2 * 2}, text));
  for (const v1::BracketOutput output : {v1::PARTNER, v1::PARENT, v1::DEPTH}) request.add_outputs(output);
  return maker.call(&v1::Operations::Stub::MatchBrackets, request);
}

inline CallMaker::Call make_intersect_clips(CallMaker& maker, std::int64_t elements) {
  v1::IntersectClipsRequest request;
  const std::vector<std::uint8_t> shapes(static_cast<std::size_t>(elements), 0);
  request.mutable_elements()->set_buffer(maker.put(v1::UINT8, {elements}, shapes));
  request.mutable_boxes()->set_buffer(maker.put_floats({elements, 4}));
  return maker.call(&v1::Operations::Stub::IntersectClips, request);
}

inline CallMaker::Call make_apply_recursive_filter(CallMaker& maker, std::int64_t elements) {
  v1::ApplyRecursiveFilterRequest request;
  request.mutable_image()->set_buffer(maker.put_floats(square_of(elements)));
  request.mutable_x()->mutable_gaussian()->set_sigma(5);
  request.mutable_y()->mutable_gaussian()->set_sigma(5);
  return maker.call(&v1::Operations::Stub::ApplyRecursiveFilter, request);
}

inline CallMaker::Call make_encode_run_lengths(CallMaker& maker, std::int64_t elements) {
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<std::uint8_t>(i / 3 % 2);
  v1::EncodeRunLengthsRequest request;
  request.mutable_array()->set_buffer(maker.put(v1::UINT8, {elements}, mask));
  return maker.call(&v1::Operations::Stub::EncodeRunLengths, request);
}

/// Runs of four elements.
inline CallMaker::Call make_decode_run_lengths(CallMaker& maker, std::int64_t elements) {
  const auto runs = static_cast<std::size_t>(elements / 4);
  v1::DecodeRunLengthsRequest request;
  request.mutable_symbols()->set_buffer(
      maker.put(v1::UINT8, {elements / 4}, std::vector<std::uint8_t>(runs, 7)));
  request.mutable_lengths()->set_buffer(
      maker.put(v1::UINT32, {elements / 4}, std::vector<std::uint32_t>(runs, 4)));
  request.add_shape(elements / 4 * 4);
  request.set_max_output_bytes(elements);
  return maker.call(&v1::Operations::Stub::DecodeRunLengths, request);
}

/// A blur and the box filter of what it made.
inline CallMaker::Call make_run_pipeline(CallMaker& maker, std::int64_t elements) {
  v1::RunPipelineRequest request;
  auto& blur = *request.add_steps()->mutable_apply_recursive_filter();
  blur.mutable_image()->set_buffer(maker.put_floats(square_of(elements)));
  blur.mutable_x()->mutable_gaussian()->set_sigma(5);
  auto& box = *request.add_steps()->mutable_filter_box();
  box.mutable_image()->mutable_step_output()->set_array("image");
  box.set_radius(9);
  request.add_outputs()->mutable_output()->set_step(1);
  request.mutable_outputs(0)->mutable_output()->set_array("image");
  return maker.call(&v1::Operations::Stub::RunPipeline, request);
}

struct OperationCalls {
  CallMaker::Call (*make)(CallMaker& maker, std::int64_t elements);
  std::int64_t some;  // elements of a call that takes some milliseconds on two cores
  std::int64_t many;  // of one that takes a good part of a second
};

/// By the RPC's name. An RPC that is missing fails the tests that go through the service's descriptor.
inline const std::map<std::string, OperationCalls>& operation_calls() {
  static const std::map<std::string, OperationCalls> calls = {
      {"BuildSamplingTable", {make_build_sampling_table, 1 << 18, 1 << 25}},
      {"DrawSamples", {make_draw_samples, 1 << 17, 1 << 24}},
      {"EvaluateDensity", {make_evaluate_density, 1 << 18, 1 << 25}},
      {"BuildSummedAreaTable", {make_build_summed_area_table, 1 << 21, 1 << 28}},
      {"SumRectangles", {make_sum_rectangles, 1 << 18, 1 << 24}},
      {"FilterBox", {make_filter_box, 1 << 20, 1 << 28}},
      {"BuildKdTree", {make_build_kd_tree, 1 << 15, 1 << 22}},
      {"FindNeighbors", {make_find_neighbors, 1 << 13, 1 << 20}},
      {"MatchBrackets", {make_match_brackets, 1 << 20, 1 << 26}},
      {"IntersectClips", {make_intersect_clips, 1 << 18, 1 << 24}},
      {"ApplyRecursiveFilter", {make_apply_recursive_filter, 1 << 18, 1 << 26}},
      {"EncodeRunLengths", {make_encode_run_lengths, 1 << 21, 1 << 28}},
      {"DecodeRunLengths", {make_decode_run_lengths, 1 << 21, 1 << 28}},
      {"RunPipeline", {make_run_pipeline, 1 << 18, 1 << 26}},
  };
  return calls;
}

/// The RPCs of the service, as its descriptor has them.
inline std::vector<std::string> operation_names() {
  const auto* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("cumulus.v1.Operations");
  std::vector<std::string> names;
  for (int i = 0; i < service->method_count(); ++i) names.push_back(service->method(i)->name());
  return names;
}

}  // namespace cumulus::testing
