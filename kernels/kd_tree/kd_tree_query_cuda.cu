#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/kd_tree_query_check.h"
#include "kernels/kd_tree/kd_tree_query_scratch.h"
#include "kernels/kd_tree/kd_tree_traversal.h"

namespace cumulus {
namespace {

using kd_tree::NearestList;
using kd_tree::QueriedTree;
using kd_tree::SearchParameters;

constexpr int kThreads = 128;

/// What the queries' kernels read. One thread a query.
template <class T>
struct Search {
  KdTreeShape shape;
  const T* tree_points;
  const std::int64_t* idx_array;
  const KdTreeNode* node_data;
  const T* node_bounds;
  const T* queries;
  const T* radii;  // null: parameters.radius
  std::int64_t queries_each;
  SearchParameters<T> parameters;

  __host__ __device__ std::int64_t all_queries() const { return shape.trees * queries_each; }
  __device__ T radius(std::int64_t number) const {
    return radii == nullptr ? parameters.radius : radii[number];
  }
  __device__ T squared_radius(std::int64_t number) const {
    return kd_tree::multiply(radius(number), radius(number));
  }
  __device__ T shown(T squared) const { return parameters.squared ? squared : std::sqrt(squared); }
  template <int D, bool kPeriodic>
  __device__ QueriedTree<T, D, kPeriodic> tree_of(std::int64_t number) const {
    return {shape, tree_points, idx_array, node_data, node_bounds, number / queries_each, parameters};
  }
  unsigned blocks() const { return static_cast<unsigned>((all_queries() + kThreads - 1) / kThreads); }
};

template <class T>
Search<T> search_of(const KdTreeShape& shape, const KdTreeView<T, Space::kDevice>& tree,
                    const NeighborQueries<T, Space::kDevice>& queries, const NeighborSearch& search) {
  return {shape,
          tree.points.data(),
          tree.idx_array.data(),
          tree.node_data.data(),
          tree.node_bounds.data(),
          queries.points.data(),
          queries.radii.empty() ? nullptr : queries.radii.data(),
          search.queries,
          SearchParameters<T>(search)};
}

/// The thread's query, on chip.
template <class T, int D>
struct OwnQuery {
  T coordinates[kd_tree::Dimensions<D>::kMost];

  __device__ OwnQuery(const Search<T>& search, std::int64_t number) {
    const kd_tree::Dimensions<D> dimensions(search.shape.dimensions);
    for (int axis = 0; axis < dimensions.count(); ++axis) {
      coordinates[axis] = search.queries[number * dimensions.count() + axis];
    }
  }
};

__device__ std::int64_t thread_number() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// The numbers of the first query and of the first tree at fault; trees come before queries.
template <class T>
__global__ void find_faults(Search<T> search, unsigned long long* first) {
  using Fault = NeighborReport::Fault;
  const std::int64_t number = thread_number();
  const auto trees = static_cast<unsigned long long>(search.shape.trees);
  if (search.parameters.periodic && number < search.shape.trees &&
      kd_tree::find_tree_fault(search.shape, search.node_bounds, search.parameters, number).fault !=
          Fault::kNone) {
    atomicMin(first, static_cast<unsigned long long>(number));
  }
  if (number < search.all_queries() &&
      kd_tree::find_fault(search.queries + number * search.shape.dimensions, search.shape.dimensions,
                          search.radius(number), search.parameters, number)
              .fault != Fault::kNone) {
    atomicMin(first, trees + static_cast<unsigned long long>(number));
  }
}

template <class T>
__global__ void describe_fault(Search<T> search, const unsigned long long* first, NeighborReport* report) {
  *report = NeighborReport();
  if (*first == ~0ull) return;
  const auto number = static_cast<std::int64_t>(*first);
  if (number < search.shape.trees) {
    *report = kd_tree::find_tree_fault(search.shape, search.node_bounds, search.parameters, number);
    return;
  }
  const std::int64_t query = number - search.shape.trees;
  *report = kd_tree::find_fault(search.queries + query * search.shape.dimensions, search.shape.dimensions,
                                search.radius(query), search.parameters, query);
}

template <class T, int D, bool kPeriodic, int kCapacity>
__global__ void __launch_bounds__(kThreads)
    search_nearest(Search<T> search, int neighbors, std::int64_t* indices, T* distances) {
  const std::int64_t number = thread_number();
  if (number >= search.all_queries()) return;
  using Tree = QueriedTree<T, D, kPeriodic>;
  const Tree tree = search.template tree_of<D, kPeriodic>(number);
  const OwnQuery<T, D> query(search, number);
  NearestList<T, kCapacity, Tree> list(tree, neighbors, search.squared_radius(number));
  kd_tree::visit_nearest_first(
      tree, query.coordinates, [&] { return list.limit(); },
      [&](std::uint32_t position, T distance) { list.offer(position, distance); });
  for (int i = 0; i < neighbors; ++i) {
    const bool found = i < list.size();
    indices[number * neighbors + i] = found ? list.index(i) : -1;
    distances[number * neighbors + i] =
        found ? search.shown(list.squared_distance(i)) : static_cast<T>(INFINITY);
  }
}

template <class T, int D, bool kPeriodic>
__global__ void __launch_bounds__(kThreads) search_counts(Search<T> search, std::int64_t* counts) {
  const std::int64_t number = thread_number();
  if (number >= search.all_queries()) return;
  const OwnQuery<T, D> query(search, number);
  std::int64_t found = 0;
  kd_tree::visit_within(search.template tree_of<D, kPeriodic>(number), query.coordinates,
                        search.squared_radius(number),
                        [&](std::uint32_t /*position*/, T /*distance*/) { ++found; });
  counts[number] = found;
}

template <class T, int D, bool kPeriodic>
__global__ void __launch_bounds__(kThreads)
    search_lists(Search<T> search, const std::int64_t* offsets, std::int64_t room, std::int64_t* indices,
                 T* distances) {
  const std::int64_t number = thread_number();
  if (number >= search.all_queries()) return;
  const OwnQuery<T, D> query(search, number);
  const QueriedTree<T, D, kPeriodic> tree = search.template tree_of<D, kPeriodic>(number);
  std::int64_t next = offsets[number];
  kd_tree::visit_within(tree, query.coordinates, search.squared_radius(number),
                        [&](std::uint32_t position, T distance) {
                          if (next < 0 || next >= room) return;
                          indices[next] = tree.index(position);
                          distances[next] = search.shown(distance);
                          ++next;
                        });
}

/// Calls body(Dimensions<D>, bool constant): the number of dimensions and whether an axis closes, as the
/// compiler is to know them.
template <class T, class Body>
void with_kernels(const Search<T>& search, const Body& body) {
  if (search.parameters.periodic)
    return body(kd_tree::Dimensions<0>(search.shape.dimensions), std::true_type());
  kd_tree::with_dimensions(search.shape.dimensions,
                           [&](auto dimensions) { body(dimensions, std::false_type()); });
}

template <class T>
void report_faults(CudaExecutor& executor, const Search<T>& search, NeighborReport* report) {
  auto* first = reinterpret_cast<unsigned long long*>(executor.scratch<std::uint64_t>(1).data());
  const DeviceSpan<NeighborReport> found = executor.scratch<NeighborReport>(1);
  CUMULUS_CUDA(cudaMemsetAsync(first, 0xFF, sizeof(*first), executor.stream()));
  const std::int64_t threads =
      search.all_queries() > search.shape.trees ? search.all_queries() : search.shape.trees;
  if (threads > 0) {
    const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
    find_faults<<<blocks, kThreads, 0, executor.stream()>>>(search, first);
  }
  describe_fault<<<1, 1, 0, executor.stream()>>>(search, first, found.data());
  CUMULUS_CUDA(cudaGetLastError());
  executor.download({reinterpret_cast<const std::byte*>(found.data()), sizeof(*report)},
                    {reinterpret_cast<std::byte*>(report), sizeof(*report)});
  executor.check_interrupt();
}

template <class T>
void nearest(CudaExecutor& executor, const KdTreeShape& shape, const KdTreeView<T, Space::kDevice>& tree,
             const NeighborQueries<T, Space::kDevice>& queries, const NeighborSearch& how, int neighbors,
             DeviceSpan<std::int64_t> indices, DeviceSpan<T> distances, NeighborReport* report) {
  kd_tree::check_queries(shape, tree, queries, how);
  kd_tree::check_nearest(shape, how, neighbors, indices, distances);
  executor.bind_thread();
  const Search<T> search = search_of(shape, tree, queries, how);
  report_faults(executor, search, report);
  if (search.all_queries() == 0) return;
  with_kernels(search, [&]<int D, bool kPeriodic>(kd_tree::Dimensions<D> /*dimensions*/,
                                                  std::bool_constant<kPeriodic> /*periodic*/) {
    const auto launch = [&](auto* kernel) {
      kernel<<<search.blocks(), kThreads, 0, executor.stream()>>>(search, neighbors, indices.data(),
                                                                  distances.data());
    };
    if (neighbors <= 8) {
      launch(search_nearest<T, D, kPeriodic, 8>);
    } else if (neighbors <= 32) {
      launch(search_nearest<T, D, kPeriodic, 32>);
    } else {
      launch(search_nearest<T, D, kPeriodic, kMaxNeighbors>);
    }
  });
  CUMULUS_CUDA(cudaGetLastError());
}

template <class T>
void count(CudaExecutor& executor, const KdTreeShape& shape, const KdTreeView<T, Space::kDevice>& tree,
           const NeighborQueries<T, Space::kDevice>& queries, const NeighborSearch& how,
           DeviceSpan<std::int64_t> counts, NeighborReport* report) {
  kd_tree::check_queries(shape, tree, queries, how);
  kd_tree::check_size("counts", counts.size(), shape.trees * how.queries);
  executor.bind_thread();
  const Search<T> search = search_of(shape, tree, queries, how);
  report_faults(executor, search, report);
  if (search.all_queries() == 0) return;
  with_kernels(search, [&]<int D, bool kPeriodic>(kd_tree::Dimensions<D> /*dimensions*/,
                                                  std::bool_constant<kPeriodic> /*periodic*/) {
    search_counts<T, D, kPeriodic>
        <<<search.blocks(), kThreads, 0, executor.stream()>>>(search, counts.data());
  });
  CUMULUS_CUDA(cudaGetLastError());
}

template <class T>
void list(CudaExecutor& executor, const KdTreeShape& shape, const KdTreeView<T, Space::kDevice>& tree,
          const NeighborQueries<T, Space::kDevice>& queries, const NeighborSearch& how,
          DeviceSpan<const std::int64_t> offsets, DeviceSpan<std::int64_t> indices, DeviceSpan<T> distances) {
  kd_tree::check_queries(shape, tree, queries, how);
  kd_tree::check_lists(shape, how, offsets, indices, distances);
  executor.bind_thread();
  const Search<T> search = search_of(shape, tree, queries, how);
  if (search.all_queries() == 0) return;
  with_kernels(search, [&]<int D, bool kPeriodic>(kd_tree::Dimensions<D> /*dimensions*/,
                                                  std::bool_constant<kPeriodic> /*periodic*/) {
    search_lists<T, D, kPeriodic><<<search.blocks(), kThreads, 0, executor.stream()>>>(
        search, offsets.data(), static_cast<std::int64_t>(indices.size()), indices.data(), distances.data());
  });
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace

void find_nearest(CudaExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<float, Space::kDevice>& tree,
                  const NeighborQueries<float, Space::kDevice>& queries, const NeighborSearch& search,
                  int neighbors, DeviceSpan<std::int64_t> indices, DeviceSpan<float> distances,
                  NeighborReport* report) {
  nearest(executor, shape, tree, queries, search, neighbors, indices, distances, report);
}
void find_nearest(CudaExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<double, Space::kDevice>& tree,
                  const NeighborQueries<double, Space::kDevice>& queries, const NeighborSearch& search,
                  int neighbors, DeviceSpan<std::int64_t> indices, DeviceSpan<double> distances,
                  NeighborReport* report) {
  nearest(executor, shape, tree, queries, search, neighbors, indices, distances, report);
}

void count_within(CudaExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<float, Space::kDevice>& tree,
                  const NeighborQueries<float, Space::kDevice>& queries, const NeighborSearch& search,
                  DeviceSpan<std::int64_t> counts, NeighborReport* report) {
  count(executor, shape, tree, queries, search, counts, report);
}
void count_within(CudaExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<double, Space::kDevice>& tree,
                  const NeighborQueries<double, Space::kDevice>& queries, const NeighborSearch& search,
                  DeviceSpan<std::int64_t> counts, NeighborReport* report) {
  count(executor, shape, tree, queries, search, counts, report);
}

void list_within(CudaExecutor& executor, const KdTreeShape& shape,
                 const KdTreeView<float, Space::kDevice>& tree,
                 const NeighborQueries<float, Space::kDevice>& queries, const NeighborSearch& search,
                 DeviceSpan<const std::int64_t> offsets, DeviceSpan<std::int64_t> indices,
                 DeviceSpan<float> distances) {
  list(executor, shape, tree, queries, search, offsets, indices, distances);
}
void list_within(CudaExecutor& executor, const KdTreeShape& shape,
                 const KdTreeView<double, Space::kDevice>& tree,
                 const NeighborQueries<double, Space::kDevice>& queries, const NeighborSearch& search,
                 DeviceSpan<const std::int64_t> offsets, DeviceSpan<std::int64_t> indices,
                 DeviceSpan<double> distances) {
  list(executor, shape, tree, queries, search, offsets, indices, distances);
}

}  // namespace cumulus
