#include "kernels/sampling_table/bilinear/vertices.h"
#include "kernels/sampling_table/tuning.h"

// What a bilinear table takes beside a constant one: a pass for the vertices, one for the weights of the
// cells.
namespace cumulus::sampling_table {
namespace {

/// The weight of a texel of a layer; notes where it is invalid.
template <class T>
__device__ float texel_weight(const VerticesArguments<T>& arguments, std::uint32_t layer, std::uint32_t x,
                              std::uint32_t y) {
  const DeviceImage<const T>& weights = arguments.weights;
  const std::uint32_t row = layer * arguments.vertices.height + y;
  const T* texel = weights.data + row * weights.row_stride + x * weights.channels;
  const Weight weight = load_weight(texel, arguments.rule);
  if (weight.guard >= kInfinityBits) {
    const std::uint64_t key =
        invalid_key(x, row, arguments.vertices.width, first_invalid_channel(texel, arguments.rule.counted));
    atomicMin(reinterpret_cast<unsigned long long*>(&arguments.findings->first_invalid),
              static_cast<unsigned long long>(key));
  }
  const WeightAdjustment adjustment =
      arguments.adjustments != nullptr ? arguments.adjustments[layer] : WeightAdjustment{};
  return CellWeight{adjusted(weight.bits, adjustment)};
}

/// The vertices of a bilinear table.
/// owns: block b has row b of the vertices of all layers.
/// reads: the texels around its vertices; the layer's adjustment.
/// writes: the row's vertices; the first invalid texel (atomicMin).
/// waits for: nothing of other blocks, so that there is no deadlock; the kernels before have ended.
/// source: this project.
template <class T>
__global__ void __launch_bounds__(kVertexThreads) write_vertices(VerticesArguments<T> arguments) {
  const sampling::TableHeader& header = arguments.header;
  const VertexRow at = vertex_row(header, blockIdx.x);
  float* values = arguments.first_vertex() + static_cast<std::size_t>(blockIdx.x) * (header.width + 1);
  const auto weight_at = [&](std::uint32_t x, std::uint32_t y) {
    return texel_weight(arguments, at.layer, x, y);
  };
  for (std::uint32_t x = threadIdx.x; x <= header.width; x += blockDim.x)
    values[x] = arguments.vertices.value(x, at.y, weight_at);
}

/// The weights of a bilinear table's cells, where their lower bounds will be.
/// owns: block b has row b of the cells of all layers.
/// reads: the vertices above and below it.
/// writes: the row's weights.
/// waits for: nothing of other blocks, so that there is no deadlock; write_vertices has ended.
/// source: this project.
template <class T>
__global__ void __launch_bounds__(kVertexThreads) write_cells(VerticesArguments<T> arguments) {
  const sampling::TableHeader& header = arguments.header;
  const EdgeRows edges = edge_rows(header, arguments.first_vertex(), blockIdx.x);
  auto* weights = reinterpret_cast<CellWeight*>(arguments.table + header.row_cdf_offset) +
                  static_cast<std::size_t>(blockIdx.x) * header.width;
  for (std::uint32_t x = threadIdx.x; x < header.width; x += blockDim.x)
    weights[x] = cell_weight(edges.above, edges.below, x, header.width);
}

}  // namespace

template <class T>
void write_vertices_and_cells(CudaExecutor& executor, const VerticesArguments<T>& arguments) {
  constexpr int kThreads = kVertexThreads;
  const sampling::TableHeader& header = arguments.header;
  write_vertices<T>
      <<<header.layers * sampling::vertex_rows(header), kThreads, 0, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
  write_cells<T><<<header.layers * header.height, kThreads, 0, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
}

template void write_vertices_and_cells(CudaExecutor&, const VerticesArguments<float>&);
template void write_vertices_and_cells(CudaExecutor&, const VerticesArguments<std::uint8_t>&);
template void write_vertices_and_cells(CudaExecutor&, const VerticesArguments<Float16>&);

}  // namespace cumulus::sampling_table
