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

// One line per RPC.
class OperationsService final : public v1::Operations::CallbackService {
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Result = v1::OperationResult;

 public:
  explicit OperationsService(Runtime& runtime) : pipeline_(runtime) {}

  // clang-format off
  Reactor* BuildSamplingTable(Context* c, const v1::BuildSamplingTableRequest* q, Result* r) override { return pipeline_.start<ops::BuildSamplingTable>(c, q, r); }
  Reactor* DrawSamples(Context* c, const v1::DrawSamplesRequest* q, Result* r) override { return pipeline_.start<ops::DrawSamples>(c, q, r); }
  Reactor* EvaluateDensity(Context* c, const v1::EvaluateDensityRequest* q, Result* r) override { return pipeline_.start<ops::EvaluateDensity>(c, q, r); }
  Reactor* BuildSummedAreaTable(Context* c, const v1::BuildSummedAreaTableRequest* q, Result* r) override { return pipeline_.start<ops::BuildSummedAreaTable>(c, q, r); }
  Reactor* SumRectangles(Context* c, const v1::SumRectanglesRequest* q, Result* r) override { return pipeline_.start<ops::SumRectangles>(c, q, r); }
  Reactor* FilterBox(Context* c, const v1::FilterBoxRequest* q, Result* r) override { return pipeline_.start<ops::FilterBox>(c, q, r); }
  Reactor* BuildKdTree(Context* c, const v1::BuildKdTreeRequest* q, Result* r) override { return pipeline_.start<ops::BuildKdTree>(c, q, r); }
  Reactor* FindNeighbors(Context* c, const v1::FindNeighborsRequest* q, Result* r) override { return pipeline_.start<ops::FindNeighbors>(c, q, r); }
  Reactor* MatchBrackets(Context* c, const v1::MatchBracketsRequest* q, Result* r) override { return pipeline_.start<ops::MatchBrackets>(c, q, r); }
  Reactor* IntersectClips(Context* c, const v1::IntersectClipsRequest* q, Result* r) override { return pipeline_.start<ops::IntersectClips>(c, q, r); }
  Reactor* ApplyRecursiveFilter(Context* c, const v1::ApplyRecursiveFilterRequest* q, Result* r) override { return pipeline_.start<ops::ApplyRecursiveFilter>(c, q, r); }
  Reactor* EncodeRunLengths(Context* c, const v1::EncodeRunLengthsRequest* q, Result* r) override { return pipeline_.start<ops::EncodeRunLengths>(c, q, r); }
  Reactor* DecodeRunLengths(Context* c, const v1::DecodeRunLengthsRequest* q, Result* r) override { return pipeline_.start<ops::DecodeRunLengths>(c, q, r); }
  // clang-format on

 private:
  Pipeline pipeline_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_operations_service(Runtime& runtime) {
  return std::make_unique<OperationsService>(runtime);
}

}  // namespace cumulus::server
