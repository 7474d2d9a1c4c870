"""Several operations as one call, of which each may take what earlier ones make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, cast

import numpy as np

from .arrays import DTYPES, NDArray
from .buffer import Buffer, ForOneCall
from .errors import Error, FailedPrecondition, InvalidArgument, Names, ResourceExhausted, name_arguments, wrong
from .image_operations import ImageOperations
from .operation import Call, CallOptions, Result
from .recovery import Resident
from .structure_operations import StructureOperations
from .v1 import kd_tree_pb2, pipeline_pb2, summed_area_table_pb2

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .client import Client


Kept = Union[Buffer, NDArray, None]
"""A `StepArray`, as type checkers see it: as what the operation answers where it is no step."""


class StepArray(Buffer):
    """An array that a step of a pipeline makes: for later steps of that pipeline, and to be named in `Pipeline.run`. Its
    shape and its elements are known once that has run."""

    def __init__(self, pipeline: "Pipeline", step: int, array: str) -> None:
        self.client = cast("Client", pipeline)  # operations on it are the pipeline's next steps
        self.step = step
        self.array = array
        self.shape = ()
        self.dtype = np.dtype(np.uint8)

    def __del__(self) -> None:
        """Nothing on a server is its own."""

    def __repr__(self) -> str:
        return f"<cumulus.StepArray {self.array!r} of step {self.step}>"

    @property
    def name(self) -> str:
        raise self._not_yet()

    def numpy(self, out: Optional[NDArray] = None, *, timeout: Optional[float] = None) -> NDArray:
        raise self._not_yet()

    def delete(self) -> None:
        raise self._not_yet()

    def __dlpack__(self, **options: Any) -> Any:
        raise self._not_yet()

    def _not_yet(self) -> FailedPrecondition:
        cure = "name it in Pipeline.run, and take what that answers"
        return FailedPrecondition(f"{self!r} is no array before its pipeline runs; {cure}", cure=cure)


def _sum_names(request: Any) -> Tuple[str, ...]:
    names: Tuple[str, ...] = ("sums",) + ("squares",) * request.squares
    if request.precision == summed_area_table_pb2.MEAN_SUBTRACTED_SUMS:
        return names + ("offsets",)
    return names + ("above", "left") * int(request.precision == summed_area_table_pb2.TILE_LOCAL_SUMS)


def _statistic_names(request: Any) -> Tuple[str, ...]:
    names = {summed_area_table_pb2.RECTANGLE_SUM: "sums", summed_area_table_pb2.RECTANGLE_MEAN: "means",
             summed_area_table_pb2.RECTANGLE_VARIANCE: "variances"}
    return tuple(names[each] for each in request.statistics)


def _tree_names(request: Any) -> Tuple[str, ...]:
    if request.layout == kd_tree_pb2.LEFT_BALANCED:
        return "points", "idx_array"
    names = ("points", "idx_array", "node_data", "node_bounds")
    return names + ("payload",) if request.HasField("payload") else names


_STEPS: Dict[str, Tuple[str, Callable[[Any], Tuple[str, ...]]]] = {
    "ApplyRecursiveFilter": ("apply_recursive_filter", lambda _: ("image",)),
    "FilterBox": ("filter_box", lambda request: ("image",) + ("deviation",) * request.deviation),
    "BuildSummedAreaTable": ("build_summed_area_table", _sum_names),
    "SumRectangles": ("sum_rectangles", _statistic_names),
    "BuildSamplingTable": ("build_sampling_table", lambda _: ("table",)),
    "DrawSamples": ("draw_samples", lambda _: ("position", "pdf", "direction")),
    "EvaluateDensity": ("evaluate_density", lambda _: ("pdf",)),
    "BuildKdTree": ("build_kd_tree", _tree_names),
    "MatchBrackets": ("match_brackets", lambda _: ("partner", "parent", "depth", "stack_top")),
    "IntersectClips": ("intersect_clips", lambda _: ("bounds",)),
}
"""The operations that may be steps: the member of PipelineStep that holds each, and the arrays that it makes."""


class _StepResult(Result):
    """What a step makes, by name."""

    def __init__(self, rpc: str, arrays: Dict[str, StepArray]) -> None:
        self._rpc = rpc
        self._values = dict(arrays)

    def array(self, name: str) -> Any:
        return self._value(name)

    def either(self, name: str, resident: bool) -> Any:
        return self._value(name)


class _StepCall(Call):
    """Puts an operation into the pipeline instead of running it."""

    def __init__(self, pipeline: "Pipeline", rpc: str, request: Any, options: Mapping[str, Any]) -> None:
        if options:
            raise TypeError(f"{rpc}: a step of a pipeline takes no {', no '.join(options)}; Pipeline.run does")
        if rpc not in _STEPS:
            raise wrong("steps", f"{rpc} is no step of a pipeline, since its results' sizes are known only after its run",
                        "the operation by itself, on an array that the pipeline keeps,")
        super().__init__(pipeline.client, rpc, request, options)
        self._pipeline = pipeline
        self._inline_bytes = pipeline.inline_bytes

    def source(self, source: Any, value: Any, field: str) -> "Call":
        if not isinstance(value, StepArray):
            if isinstance(value, Buffer):
                self._pipeline.held.append(value)
            return super().source(source, value, field)
        if cast(object, value.client) is not self._pipeline:
            raise wrong(field, "is of another pipeline", "what an earlier step of the same pipeline makes")
        source.step_output.step = value.step
        source.step_output.array = value.array
        return self

    def run(self, resident: bool, result_bytes: int) -> Result:
        self._pipeline.inline_bytes = self._inline_bytes
        step = self._pipeline.append(self._rpc, self._request, self._sending.named, self._uploaded)
        self._pipeline.step_names.append((f"steps[{step}].{_STEPS[self._rpc][0]}.", self._names))
        names = _STEPS[self._rpc][1](self._request)
        return _StepResult(self._rpc, {name: StepArray(self._pipeline, step, name) for name in names})


class _WholeCall(Call):
    """The call of all steps; what their arrays were uploaded as stays."""

    def __init__(self, client: "Client", request: Any, named: List[Tuple[Any, Resident]],
                 options: Mapping[str, Any], step_names: Sequence[Tuple[str, Names]]) -> None:
        super().__init__(client, "RunPipeline", request, options)
        self._sending.named.extend(named)
        self._needs_session = bool(named)
        self._step_names = step_names

    def _name_arguments(self, error: InvalidArgument) -> None:
        for before, names in self._step_names:
            name_arguments(error, names, before)


class Pipeline(ImageOperations, StructureOperations):
    """Operations that run as one call: checked, admitted and queued once. What one makes for another never leaves the
    server. Made by `Client.pipeline`; not for several threads at once.

    ```python
    p = c.pipeline()
    table = p.sampling_table(p.blur(sky, 3))
    drawn = table.sample(1024)
    got = p.run({"table": table.buffer, "position": drawn.position})
    ```

    It has the operations of `Client`, and what they answer has theirs; each becomes a step, and its arrays are there once
    `run` has been called. Run lengths and a tree's neighbours are no steps, since the sizes of their results are known only
    after their runs; of brackets, numbers (`maximum_depth`, `unmatched`) are None. At most 64 steps.
    """

    def __init__(self, client: "Client") -> None:
        self.client = client
        self.capabilities = client.capabilities
        self.inline_bytes = 0
        self.step_names: List[Tuple[str, Names]] = []  # with what a step's fields begin, and what its caller calls them
        self._request = pipeline_pb2.RunPipelineRequest()
        self._residents: List[Resident] = []  # which the request names by their places
        self.held: List[Buffer] = []  # given to it or uploaded for it, so that they are there when it runs
        self._resident = False  # a step was given a buffer

    @property
    def address(self) -> str:
        """The server's."""
        return self.client.address

    def __repr__(self) -> str:
        return f"<cumulus.Pipeline of {len(self._request.steps)} steps on {self.address}>"

    def begin(self, rpc: str, request: Any, options: Mapping[str, Any]) -> Call:
        return _StepCall(self, rpc, request, options)

    def given(self, value: Any, field: str, dtypes: Sequence[str] = DTYPES,
              extents: Optional[Sequence[int]] = None) -> Union[NDArray, ForOneCall]:
        """As the client's."""
        return self.client.given(value, field, dtypes, extents)

    def append(self, rpc: str, request: Any, named: List[Tuple[Any, Resident]], uploaded: List[Buffer]) -> int:
        """Puts a request of an operation, with its sources, behind the others, and answers its place."""
        for source, resident in named:
            source.buffer = str(len(self._residents))
            self._residents.append(resident)
        self.held.extend(uploaded)
        self._resident = self._resident or len(named) > len(uploaded)
        getattr(self._request.steps.add(), _STEPS[rpc][0]).CopyFrom(request)
        return len(self._request.steps) - 1

    def run(self, keep: Mapping[str, Kept], *, resident: Optional[bool] = None,
            **call: "Unpack[CallOptions]") -> Dict[str, Union[NDArray, Buffer]]:
        """Runs the steps in their order; may be called again, and more steps be put behind them.

        Args:
            keep: arrays of the steps, at most 16, each once, by the names that they get; all others are gone after the run.
            resident: whether they stay on the server, as `Buffer`s; without, where any step was given a `Buffer`.

        Returns:
            The arrays by their names.

        Raises:
            InvalidArgument: `field` is named from the whole on: "steps[2].filter_box.radius".
            FailedPrecondition: a step has no answer; `metadata["step"]` is its place. Nothing is kept.
        """
        stays = self._resident if resident is None else resident
        if not stays:
            try:
                return self._run(keep, False, 0, call)
            except ResourceExhausted as error:
                if not _is_too_large(error):
                    raise
        return self._run(keep, stays, self._unknown, call)

    def _run(self, keep: Mapping[str, Kept], stays: bool, result_bytes: int,
             options: CallOptions) -> Dict[str, Union[NDArray, Buffer]]:
        request = pipeline_pb2.RunPipelineRequest()
        request.CopyFrom(self._request)
        for name, array in keep.items():
            if not isinstance(array, StepArray) or cast(object, array.client) is not self:
                raise wrong(f"keep[{name!r}]", "is no array of this pipeline's steps", "what one of its operations answered")
            kept = request.outputs.add(name=name)
            kept.output.step = array.step
            kept.output.array = array.array
        named = [(source, self._residents[int(source.buffer)]) for source in _named_sources(request)]
        result = _WholeCall(self.client, request, named, options, self.step_names).run(stays, result_bytes)
        return {name: result.either(name, stays) for name in keep}


def _is_too_large(error: Error) -> bool:
    """Whether the server refused, before it ran anything, since the arrays do not fit into its answer."""
    return any(subject == "limits:max_inline_bytes" for subject, _ in error.violations)


def _named_sources(request: pipeline_pb2.RunPipelineRequest) -> Iterator[Any]:
    """The messages in its steps that name a buffer."""
    for step in request.steps:
        operation = getattr(step, str(step.WhichOneof("operation")))
        for field, value in operation.ListFields():
            if field.message_type is None or field.message_type.name != "Source":
                continue
            if value.HasField("buffer"):
                yield value
            elif value.HasField("encoded") and value.encoded.HasField("buffer"):
                yield value.encoded
