#include "server/operations/operations_service.h"

#include "cumulus/v1/operations.grpc.pb.h"
#include "server/operations/bracket_match/intersect_clips.h"
#include "server/operations/bracket_match/match.h"
#include "server/operations/kd_tree/build.h"
#include "server/operations/kd_tree/find_neighbors.h"
#include "server/operations/recursive_filter/apply.h"
#include "server/operations/run_length/decode.h"
#include "server/operations/run_length/encode.h"
#include "server/operations/sampling_table/build.h"
#include "server/operations/sampling_table/draw_samples.h"
#include "server/operations/sampling_table/evaluate_density.h"
#include "server/operations/summed_area_table/build.h"
#include "server/operations/summed_area_table/filter_box.h"
#include "server/operations/summed_area_table/sum_rectangles.h"
#include "server/pipeline/pipeline.h"

namespace cumulus::server {
namespace {

/// One line per operation; null where the step names none.
std::unique_ptr<OperationRun> make_step_run(const v1::PipelineStep& step) {
  // clang-format off
  switch (step.operation_case()) {
    case v1::PipelineStep::kBuildSamplingTable: return std::make_unique<TypedRun<ops::BuildSamplingTable>>(step.build_sampling_table());
    case v1::PipelineStep::kDrawSamples: return std::make_unique<TypedRun<ops::DrawSamples>>(step.draw_samples());
    case v1::PipelineStep::kEvaluateDensity: return std::make_unique<TypedRun<ops::EvaluateDensity>>(step.evaluate_density());
    case v1::PipelineStep::kBuildSummedAreaTable: return std::make_unique<TypedRun<ops::BuildSummedAreaTable>>(step.build_summed_area_table());
    case v1::PipelineStep::kSumRectangles: return std::make_unique<TypedRun<ops::SumRectangles>>(step.sum_rectangles());
    case v1::PipelineStep::kFilterBox: return std::make_unique<TypedRun<ops::FilterBox>>(step.filter_box());
    case v1::PipelineStep::kBuildKdTree: return std::make_unique<TypedRun<ops::BuildKdTree>>(step.build_kd_tree());
    case v1::PipelineStep::kFindNeighbors: return std::make_unique<TypedRun<ops::FindNeighbors>>(step.find_neighbors());
    case v1::PipelineStep::kMatchBrackets: return std::make_unique<TypedRun<ops::MatchBrackets>>(step.match_brackets());
    case v1::PipelineStep::kIntersectClips: return std::make_unique<TypedRun<ops::IntersectClips>>(step.intersect_clips());
    case v1::PipelineStep::kApplyRecursiveFilter: return std::make_unique<TypedRun<ops::ApplyRecursiveFilter>>(step.apply_recursive_filter());
    case v1::PipelineStep::kEncodeRunLengths: return std::make_unique<TypedRun<ops::EncodeRunLengths>>(step.encode_run_lengths());
    case v1::PipelineStep::kDecodeRunLengths: return std::make_unique<TypedRun<ops::DecodeRunLengths>>(step.decode_run_lengths());
    case v1::PipelineStep::OPERATION_NOT_SET: return nullptr;
  }
  // clang-format on
  return nullptr;
}

/// A service whose methods of `Methods`, which gRPC generates, take messages as they come.
template <class Service, template <class> class... Methods>
struct WithRawMethods {
  using Type = Service;
};
template <class Service, template <class> class Method, template <class> class... More>
struct WithRawMethods<Service, Method, More...> {
  using Type = typename WithRawMethods<Method<Service>, More...>::Type;
};

using Rpcs = v1::Operations;
// One line per RPC, and one below.
using RawOperations = WithRawMethods<
    Rpcs::Service, Rpcs::WithRawCallbackMethod_BuildSamplingTable, Rpcs::WithRawCallbackMethod_DrawSamples,
    Rpcs::WithRawCallbackMethod_EvaluateDensity, Rpcs::WithRawCallbackMethod_BuildSummedAreaTable,
    Rpcs::WithRawCallbackMethod_SumRectangles, Rpcs::WithRawCallbackMethod_FilterBox,
    Rpcs::WithRawCallbackMethod_BuildKdTree, Rpcs::WithRawCallbackMethod_FindNeighbors,
    Rpcs::WithRawCallbackMethod_MatchBrackets, Rpcs::WithRawCallbackMethod_IntersectClips,
    Rpcs::WithRawCallbackMethod_ApplyRecursiveFilter, Rpcs::WithRawCallbackMethod_EncodeRunLengths,
    Rpcs::WithRawCallbackMethod_DecodeRunLengths, Rpcs::WithRawCallbackMethod_RunPipeline>::Type;

class OperationsService final : public RawOperations, public CountsItsCalls {
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Bytes = grpc::ByteBuffer;

 public:
  explicit OperationsService(Runtime& runtime) : pipeline_(runtime) {}

  std::string count_in(std::shared_ptr<OpenCalls> calls) override {
    pipeline_.count_in(std::move(calls));
    return concat("/", Rpcs::service_full_name(), "/");
  }

  // clang-format off
  Reactor* BuildSamplingTable(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::BuildSamplingTable>(c, q, r); }
  Reactor* DrawSamples(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::DrawSamples>(c, q, r); }
  Reactor* EvaluateDensity(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::EvaluateDensity>(c, q, r); }
  Reactor* BuildSummedAreaTable(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::BuildSummedAreaTable>(c, q, r); }
  Reactor* SumRectangles(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::SumRectangles>(c, q, r); }
  Reactor* FilterBox(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::FilterBox>(c, q, r); }
  Reactor* BuildKdTree(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::BuildKdTree>(c, q, r); }
  Reactor* FindNeighbors(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::FindNeighbors>(c, q, r); }
  Reactor* MatchBrackets(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::MatchBrackets>(c, q, r); }
  Reactor* IntersectClips(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::IntersectClips>(c, q, r); }
  Reactor* ApplyRecursiveFilter(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::ApplyRecursiveFilter>(c, q, r); }
  Reactor* EncodeRunLengths(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::EncodeRunLengths>(c, q, r); }
  Reactor* DecodeRunLengths(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start<ops::DecodeRunLengths>(c, q, r); }
  Reactor* RunPipeline(Context* c, const Bytes* q, Bytes* r) override { return pipeline_.start_chain(c, q, make_step_run, r); }
  // clang-format on

 private:
  Pipeline pipeline_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_operations_service(Runtime& runtime) {
  return std::make_unique<OperationsService>(runtime);
}

}  // namespace cumulus::server
