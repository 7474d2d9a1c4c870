"""What calls of other libraries take on a GPU: as cumulus_bench measures, by events on a stream that is held while calls are put on it."""
import statistics

import cupy
import numpy
import torch

HOLD = cupy.RawKernel(r"""
extern "C" __global__ void hold(const volatile int* released) {
  long long begin = 0, now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    __nanosleep(200);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (*released == 0 && now - begin < 50000000);
}
""", "hold")
SAMPLE_SECONDS = 200e-6
MOST_RUNS = 20
MOST_SAMPLES = 21
MOST_SECONDS = 0.3  # of one subject, but for its least two runs


class Stream:
    """One stream for PyTorch, CuPy and whoever takes a handle."""

    def __init__(self):
        self.torch = torch.cuda.Stream()
        torch.cuda.set_stream(self.torch)
        self.cupy = cupy.cuda.ExternalStream(self.torch.cuda_stream)
        self.cupy.use()
        self._pinned = cupy.cuda.alloc_pinned_memory(4)
        self._released = numpy.frombuffer(self._pinned, numpy.int32, 1)

    def seconds(self, count, run):
        """Of one of `count` runs in a row. The host's part does not count, unless a run waits for the device."""
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        self._released[0] = 0
        HOLD((1,), (1,), (numpy.uint64(self._pinned.ptr),))
        begin.record(self.cupy)
        try:
            for _ in range(count):
                run()
            end.record(self.cupy)
        finally:
            self._released[0] = 1
        self.cupy.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) / 1e3 / count

    def median_seconds(self, run):
        """Of one run, after runs that do not count; one that takes long is not repeated."""
        self.seconds(1, run)
        warm = self.seconds(1, run)
        if warm > MOST_SECONDS:
            return warm
        runs = int(numpy.clip(numpy.ceil(SAMPLE_SECONDS / warm), 1, MOST_RUNS))
        samples = int(numpy.clip(MOST_SECONDS / warm / runs, 2, MOST_SAMPLES))
        return statistics.median(self.seconds(runs, run) for _ in range(samples))
