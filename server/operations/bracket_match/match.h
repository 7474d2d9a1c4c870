#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cumulus/v1/bracket_match.pb.h"
#include "kernels/bracket_match/bracket_match.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct MatchBrackets {
  using Request = v1::MatchBracketsRequest;
  using Report = BracketReport;
  struct Plan {
    std::int64_t count = 0;
    bool tokens = false;
    bool wide = false;  // 64-bit indices
    bool lenient = false;
    bool segmented = false;
    BracketTable table;  // of bytes
    std::vector<v1::BracketOutput> outputs;
  };
  static constexpr std::string_view kName = "MatchBrackets";

  static std::vector<SourceField> sources(const Request& request);
  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs);
  static std::vector<OutputSpec> outputs(const Plan& plan);
  static Cost cost(const Plan& plan);
  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan);
  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report);
  static absl::Status conclude(const Plan& plan, const Report& report);
};

}  // namespace cumulus::server::ops
