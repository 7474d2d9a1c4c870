#include "kernels/recursive_filter/math/axis_plan.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cumulus::recursive_filter {
namespace {

using Real = long double;

/// Single precision serves filters whose poles are farther than this from the unit circle.
constexpr double kMinSingleDistance = 1.0 / 16;
constexpr Real kDecayed = 1e-13L;

DirectionPlan with_sections(const OneWayFilter& filter, int order) {
  DirectionPlan plan{};
  plan.transition.order = order;
  std::vector<Real> real_poles(static_cast<std::size_t>(order - filter.order), 0);
  int pair = 0;
  for (int k = 0; k < filter.order; ++k) {
    const std::complex<Real> pole(filter.poles[static_cast<std::size_t>(k)]);
    if (pole.imag() == 0) real_poles.push_back(pole.real());
    if (pole.imag() <= 0) continue;  // its conjugate stands for both
    const Real radius = std::abs(pole);
    const Real half_angle = std::arg(pole) / 2;
    if (pole.real() >= 0) {
      const Real sine = std::sin(half_angle);
      plan.sections.pairs[pair++] = {radius, radius, 4 * radius * sine * sine};
    } else {
      const Real cosine = std::cos(half_angle);
      plan.sections.pairs[pair++] = {-radius, -radius, -4 * radius * cosine * cosine};
    }
  }
  if (order % 2 == 1) {
    plan.sections.single = real_poles.back();
    real_poles.pop_back();
  }
  for (std::size_t k = 0; k + 1 < real_poles.size(); k += 2) {
    plan.sections.pairs[pair++] = {real_poles[k], real_poles[k + 1], 0};
  }
  plan.sections.gain = filter.gain;
  return plan;
}

/// Of the last number of the state.
Real response_to_constant(const DirectionPlan& plan) {
  const int order = plan.transition.order;
  Real product = order % 2 == 1 ? 1 - plan.sections.single : 1;
  for (int k = 0; k < order / 2; ++k) {
    const auto& pair = plan.sections.pairs[k];
    product *= (1 - pair.first) * (1 - pair.second) + pair.coupling;
  }
  return plan.sections.gain / product;
}

/// Rounds what a direction runs with to float, so that matrices and pixels obey the same filter, and keeps
/// the response to a constant as it was.
void round_to_float(DirectionPlan& plan) {
  const Real wanted = response_to_constant(plan);
  const auto round = [](Real& value) { value = static_cast<float>(value); };
  round(plan.sections.single);
  for (auto& pair : plan.sections.pairs) {
    round(pair.first);
    round(pair.second);
    round(pair.coupling);
  }
  const Real rounded = response_to_constant(plan);
  if (rounded != 0) plan.sections.gain *= wanted / rounded;
}

/// One step of the sections, by columns.
void find_matrices(DirectionPlan& plan) {
  with_order(plan.transition.order, [&]<int Order>() {
    const auto sections = sections_of<Order, Real>(plan);
    for (int column = 0; column <= Order; ++column) {
      Real state[Order] = {};
      if (column < Order) state[column] = 1;
      sections.advance(state, column < Order ? Real{0} : Real{1});
      for (int row = 0; row < Order; ++row) {
        (column < Order ? plan.transition.at(row, column) : plan.input[static_cast<std::size_t>(row)]) =
            state[row];
      }
    }
  });
}

/// Where z^-1 is `delay`: the transfer functions of all numbers of the state, divided by the last one's.
struct RelativeResponses {
  StateVector of_state{};
  Real denominator = 1;  // of the whole chain

  RelativeResponses(const DirectionPlan& plan, Real delay) {
    const int order = plan.transition.order;
    for (int k = order / 2 - 1; k >= 0; --k) {
      const auto& pair = plan.sections.pairs[k];
      const auto outer = static_cast<std::size_t>(order % 2) + 2 * static_cast<std::size_t>(k) + 1;
      of_state[outer] = denominator;
      of_state[outer - 1] = denominator * (1 - pair.second * delay);
      denominator *= (1 - pair.first * delay) * (1 - pair.second * delay) + pair.coupling * delay;
    }
    if (order % 2 == 0) return;
    of_state[0] = denominator;
    denominator *= 1 - plan.sections.single * delay;
  }
};

Real value_of_zeros(const OneWayFilter& filter, Real delay) {
  std::complex<Real> product = 1;
  for (int k = 0; k < filter.zero_count; ++k) {
    product *= Real{1} - std::complex<Real>(filter.zeros[static_cast<std::size_t>(k)]) * delay;
  }
  return product.real() * std::pow(delay, filter.delay);
}

/// Of z^-order in the denominator.
Real last_coefficient(const DirectionPlan& plan) {
  const int order = plan.transition.order;
  Real product = order % 2 == 1 ? -plan.sections.single : 1;
  for (int k = 0; k < order / 2; ++k) product *= plan.sections.pairs[k].first * plan.sections.pairs[k].second;
  return product;
}

/// The weights that give the sections the filter's zeros: w T(z) + d = scale N(z) T_last(z), for the state's
/// transfer functions T and the zeros' polynomial N, divided by T_last and solved at `order` places whose
/// distance from z = 1 is about that of the poles.
void find_weights(DirectionPlan& plan, const OneWayFilter& filter, Real scale) {
  const int order = plan.transition.order;
  const auto last = static_cast<std::size_t>(order - 1);
  if (filter.only_poles()) {
    plan.sections.weights[last] = scale;
    return;
  }
  std::complex<Real> product_of_zeros = filter.zero_count + filter.delay == order ? 1 : 0;
  for (int k = 0; k < filter.zero_count; ++k) {
    product_of_zeros *= -std::complex<Real>(filter.zeros[static_cast<std::size_t>(k)]);
  }
  const Real zeros_last = product_of_zeros.real();
  const Real over_last_state = zeros_last == 0 ? 0 : scale * zeros_last / last_coefficient(plan);
  plan.sections.direct = over_last_state * plan.sections.gain;

  Real distance = 0;
  for (int k = 0; k < filter.order; ++k) {
    const std::complex<Real> pole(filter.poles[static_cast<std::size_t>(k)]);
    distance += std::abs((Real{1} - pole) / (Real{1} + pole)) / filter.order;
  }
  StateMatrix responses;
  responses.order = order;
  StateVector wanted{};
  for (int row = 0; row < order; ++row) {
    const Real v = distance * std::pow(Real{2}, row - order / 2);
    const Real delay = (1 - v) / (1 + v);
    const RelativeResponses relative(plan, delay);
    responses.rows[static_cast<std::size_t>(row)] = relative.of_state;
    wanted[static_cast<std::size_t>(row)] =
        scale * value_of_zeros(filter, delay) - over_last_state * relative.denominator;
  }
  // Poles near 0 make all responses nearly alike: what the inverse loses by that, a second round finds.
  const StateMatrix solution = inverse(responses);
  StateVector weights = solution * wanted;
  const StateVector reached = responses * weights;
  for (std::size_t k = 0; k <= last; ++k) wanted[k] -= reached[k];
  const StateVector correction = solution * wanted;
  for (std::size_t k = 0; k <= last; ++k) weights[k] += correction[k];
  for (std::size_t k = 0; k <= last; ++k) plan.sections.weights[k] = weights[k];
}

DirectionPlan plan_direction(const OneWayFilter& filter, int order, Precision precision) {
  if (const auto pole = unstable_pole(filter)) {
    throw std::invalid_argument("recursive filter: the pole " + std::to_string(pole->real()) + " + " +
                                std::to_string(pole->imag()) + "i has radius " +
                                std::to_string(std::abs(*pole)) + "; at most " +
                                std::to_string(kMaxPoleRadius) + " is right");
  }
  DirectionPlan plan = with_sections(filter, order);
  // Where weights make the filtered pixel of the state, the state itself is brought to the image's size.
  if (!filter.only_poles()) plan.sections.gain /= response_to_constant(plan);
  const Real scale = filter.gain / plan.sections.gain;
  if (precision == Precision::kSingle) round_to_float(plan);
  find_weights(plan, filter, scale);
  find_matrices(plan);
  return plan;
}

Real largest_magnitude(const StateMatrix& matrix) {
  Real largest = 0;
  for (int row = 0; row < matrix.order; ++row) {
    for (int column = 0; column < matrix.order; ++column) {
      largest = std::max(largest, std::abs(matrix.at(row, column)));
    }
  }
  return largest;
}

/// sum_j Lb^j bb wa La^(j+1), doubling the number of terms each round.
StateMatrix sum_through_causal(const DirectionPlan& causal, const DirectionPlan& anticausal) {
  const int order = causal.transition.order;
  const StateVector output = causal.weights() * causal.transition;
  StateMatrix sum;
  sum.order = order;
  for (int row = 0; row < order; ++row) {
    for (int column = 0; column < order; ++column) {
      sum.at(row, column) =
          anticausal.input[static_cast<std::size_t>(row)] * output[static_cast<std::size_t>(column)];
    }
  }
  StateMatrix left = anticausal.transition;
  StateMatrix right = causal.transition;
  constexpr Real kNegligible = 1e-30L;
  for (int round = 0; round < 30; ++round) {  // 2^30 terms: poles have a radius of at most kMaxPoleRadius
    if (largest_magnitude(left) * largest_magnitude(right) < kNegligible) break;
    sum = sum + left * sum * right;
    left = left * left;
    right = right * right;
  }
  return sum;
}

template <std::size_t kCount>
void scale(Real factor, Real (&values)[kCount]) {
  for (Real& value : values) value *= factor;
}
void scale(Real factor, StateVector& values) {
  for (Real& value : values) value *= factor;
}
StateMatrix scaled(Real factor, StateMatrix matrix) {
  for (StateVector& row : matrix.rows) scale(factor, row);
  return matrix;
}

/// The causal filter's transfer function with a matrix for z^-1.
StateMatrix transfer_of(const DirectionPlan& causal, const StateMatrix& delay) {
  const int order = delay.order;
  const StateMatrix one = StateMatrix::identity(order);
  StateMatrix transfer = scaled(causal.sections.direct, one);
  StateMatrix state = scaled(causal.sections.gain, one);  // of the section that the chain has come to
  const auto weigh = [&](int k, const StateMatrix& response) {
    transfer = transfer + scaled(causal.sections.weights[k], response);
  };
  if (order % 2 == 1) {
    state = state * inverse(one - scaled(causal.sections.single, delay));
    weigh(0, state);
  }
  for (int k = 0; k < order / 2; ++k) {
    const auto& pair = causal.sections.pairs[k];
    const StateMatrix to_outer = one - scaled(pair.second, delay);
    state = state * inverse((one - scaled(pair.first, delay)) * to_outer + scaled(pair.coupling, delay));
    weigh(order % 2 + 2 * k, to_outer * state);
    weigh(order % 2 + 2 * k + 1, state);
  }
  return transfer;
}

/// The matrices from runs over the image to the initial condition of one direction: from its own run and from
/// that over the reversed image.
struct BoundarySolution {
  StateMatrix from_own_run, from_reversed_run;
  StateVector from_edge{};
};

BoundarySolution solve_boundary(const DirectionPlan& plan, FilterBoundary boundary, std::int64_t length) {
  const StateMatrix& transition = plan.transition;
  const StateMatrix one = StateMatrix::identity(transition.order);
  BoundarySolution solution;
  solution.from_own_run.order = solution.from_reversed_run.order = transition.order;
  if (boundary == FilterBoundary::kClamp) {
    solution.from_edge = inverse(one - transition) * plan.input;
  } else if (boundary == FilterBoundary::kRepeat) {
    solution.from_own_run = inverse(one - power(transition, length));
  } else if (boundary != FilterBoundary::kZero) {
    const std::int64_t run = boundary == FilterBoundary::kMirror ? length - 1 : length;
    solution.from_reversed_run = inverse(one - power(transition, 2 * run));
    solution.from_own_run = solution.from_reversed_run * power(transition, run);
  }
  return solution;
}

std::int64_t decay_length_of(const DirectionPlan& plan, std::int64_t length) {
  StateVector response = plan.input;
  StateVector total{};
  const int order = plan.transition.order;
  for (std::int64_t pixels = 1; pixels < length; ++pixels) {
    bool decayed = true;
    for (std::size_t i = 0; i < static_cast<std::size_t>(order); ++i) {
      total[i] += std::abs(response[i]);
      decayed = decayed && std::abs(response[i]) * static_cast<Real>(pixels) <= kDecayed * total[i];
    }
    if (decayed) return pixels;
    response = plan.transition * response;
  }
  return length;
}

}  // namespace

StateVector DirectionPlan::weights() const {
  StateVector weights{};
  std::copy(std::begin(sections.weights), std::end(sections.weights), weights.begin());
  return weights;
}

int kernel_order(const RecursiveFilter& filter) {
  int order = 0;
  for (const OneWayFilter* direction :
       {&filter.y.causal, &filter.y.anticausal, &filter.x.causal, &filter.x.anticausal}) {
    order = std::max(order, direction->only_poles() ? direction->order : std::max(direction->order, 4));
  }
  return *std::lower_bound(std::begin(kKernelOrders), std::end(kKernelOrders), order);
}

Precision precision_for(const RecursiveFilter& filter) {
  for (const AxisFilter* axis : {&filter.y, &filter.x}) {
    for (const OneWayFilter* direction : {&axis->causal, &axis->anticausal}) {
      for (int k = 0; k < direction->order; ++k) {
        if (1 - std::abs(direction->poles[static_cast<std::size_t>(k)]) < kMinSingleDistance)
          return Precision::kDouble;
      }
    }
  }
  return Precision::kSingle;
}

AxisPlan plan_axis(const AxisFilter& filter, std::int64_t length, int order, Precision precision) {
  AxisPlan plan;
  plan.order = order;
  plan.length = length;
  plan.boundary = filter.boundary;
  // The mirror image of one pixel is that pixel for ever, and a run that leaves it out has nothing.
  if (length == 1 && filter.boundary == FilterBoundary::kMirror) plan.boundary = FilterBoundary::kClamp;
  plan.causal = plan_direction(filter.causal, order, precision);
  plan.anticausal = plan_direction(filter.anticausal, order, precision);
  const auto is_identity = [](const OneWayFilter& direction) {
    return direction.order == 0 && direction.gain == 1;
  };
  plan.identity = is_identity(filter.causal) && is_identity(filter.anticausal);
  plan.through_causal = sum_through_causal(plan.causal, plan.anticausal);
  plan.through_anticausal = transfer_of(plan.causal, plan.anticausal.transition);

  const BoundarySolution start = solve_boundary(plan.causal, plan.boundary, length);
  plan.start_from_causal_run = start.from_own_run;
  plan.start_from_reversed_run = start.from_reversed_run;
  plan.start_from_first_pixel = start.from_edge;
  const BoundarySolution end = solve_boundary(plan.anticausal, plan.boundary, length);
  plan.end_from_anticausal_run = end.from_own_run;
  plan.end_from_reversed_run = end.from_reversed_run;
  plan.end_from_last_pixel = end.from_edge;
  if (plan.needs_runs()) {
    plan.decay_length =
        std::max(decay_length_of(plan.causal, length), decay_length_of(plan.anticausal, length));
  }
  return plan;
}

bool has_zero_gain(const AxisPlan& plan) {
  return !plan.identity && (plan.causal.sections.gain == 0 || plan.anticausal.sections.gain == 0);
}

UnitGainAxis with_unit_gains(const AxisPlan& axis) {
  UnitGainAxis unit_gain{axis};
  AxisPlan& plan = unit_gain.plan;
  const Real causal_gain = axis.causal.sections.gain;
  const Real anticausal_gain = axis.anticausal.sections.gain;
  const bool weighs = axis.order > 3;  // Sections::kWeighsState
  const auto leave_out = [weighs](Real gain, DirectionPlan& direction) {
    direction.sections.gain = 1;
    if (weighs) scale(gain, direction.sections.weights);
    scale(1 / gain, direction.input);
  };
  leave_out(causal_gain, plan.causal);
  leave_out(anticausal_gain, plan.anticausal);
  plan.through_causal = scaled((weighs ? causal_gain : 1) / anticausal_gain, axis.through_causal);
  plan.through_anticausal = scaled(weighs ? 1 : 1 / causal_gain, axis.through_anticausal);
  scale(1 / causal_gain, plan.start_from_first_pixel);
  scale(1 / anticausal_gain, plan.end_from_last_pixel);
  if (!weighs) unit_gain.scale = causal_gain * anticausal_gain;
  return unit_gain;
}

}  // namespace cumulus::recursive_filter
