#!/usr/bin/env python3
"""Times Cumulus on a GPU beside CuPy, PyTorch, torchvision and CV-CUDA, in one run: Gaussians, box filters, summed-area tables.

    bench/beside/gpu_peers.py build/release --json bench/results/FOLDER_NAME.json [--operations gaussian box table]

Needs CuPy and PyTorch; torchvision and CV-CUDA (cvcuda-cu13) take part where they are. Everything lies in GPU memory, noise in
[0, 1), borders clamped. Cumulus is rows of build/bench/cumulus_bench, which verifies them: the default calls as kernels, of Gaussians
also `deriche`, of boxes also with the look for NaN that the service puts before them. Of every case the peers' whole results are
compared on the GPU with CuPy's; of the shapes of --whole also what a cumulusd with the CUDA backend answers. CuPy, SciPy's twin, cuts
Gaussians off at 4 sigma, and so do the others here. PyTorch has pictures in planes, as it likes them, and filters along one axis
after the other; torchvision and CV-CUDA take whole windows. PyTorch's convolutions are as it sets them, in TF32. A peer that would
take more than a second for a case, by its time for a smaller one, is left out of it. All Gaussians take minutes, most of it to
verify; --operations, --extents, --channels and --types ask for fewer.
"""
import argparse
import collections
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import cupy
import cupyx.scipy.ndimage
import numpy
import torch

from daemon import daemon
from gpu_timing import Stream

try:
    import torchvision.transforms.v2.functional as torchvision
except ImportError:
    torchvision = None
try:
    import cvcuda
except ImportError:
    cvcuda = None

EXTENTS = [(1080, 1920), (1024, 2048), (2160, 3840), (2048, 4096), (4096, 8192)]
CHANNELS = [1, 3, 4]
TYPES = {"f32": numpy.float32, "f16": numpy.float16}
SIZES = {"gaussian": [2, 8, 32], "box": [4, 32], "table": [0]}
MOST_SECONDS = 1
TOLERANCES = {"f32": 1e-3, "f16": 2e-3}  # of results of noise in [0, 1); tables are relative to their largest sum


class Case(collections.namedtuple("Case", "operation size extents channels type")):
    """`size`: sigma or radius."""

    @property
    def shape(self):
        return self.extents if self.channels == 1 else (*self.extents, self.channels)

    @property
    def shape_name(self):
        return "x".join(map(str, self.shape))

    @property
    def name(self):
        size = f"{self.size}/" if self.size else ""
        return f"{self.operation}/{size}{self.shape_name}/{self.type}"

    def rows_of_cumulus(self):
        """{what: the row of cumulus_bench}. The look for NaN is measured of boxes of floats in RGB alone."""
        if self.operation == "table":
            types = {"f32": "f32-f64", "f16": "f16-f32"}[self.type]
            return {"cumulus": f"summed_area_table/{types}/{self.shape_name}"}
        half = {"f32": "", "f16": "half/"}[self.type]
        if self.operation == "gaussian":
            pictures = f"{self.size}-clamp/pictures/{half}{self.shape_name}"
            return {"cumulus": f"recursive_filter/fir-{pictures}", "cumulus_deriche": f"recursive_filter/deriche-{pictures}"}
        form = f"filter_box/{self.type}/%sclamp-radius-{self.size}/{self.shape_name}"
        return {"cumulus": form % ""} | ({"cumulus_with_look": form % "refuse-"} if (self.channels, self.type) == (3, "f32") else {})

    def command(self):
        """Of the program cumulus."""
        return {"gaussian": ["blur", "--sigma", str(self.size)], "box": ["box-filter", "--radius", str(self.size)],
                "table": ["summed-area-table"]}[self.operation]


def image_of(case):
    return cupy.random.default_rng(1).random(case.shape, dtype=cupy.float32).astype(TYPES[case.type])


def sides(case):
    """Of the window, in pixels."""
    return 2 * 4 * case.size + 1 if case.operation == "gaussian" else 2 * case.size + 1


def planes_of(image):
    """[channels, 1, height, width] of PyTorch."""
    picture = torch.as_tensor(image, device="cuda")
    return (picture[None, None] if picture.dim() == 2 else picture.permute(2, 0, 1)[:, None]).contiguous()


def picture_of(planes):
    picture = planes[:, 0]
    return cupy.asarray(picture[0] if len(picture) == 1 else picture.permute(1, 2, 0).contiguous())


def with_cupy(case, image, _):
    """The picture's own layout and type; a Gaussian of the channels is none."""
    if case.operation == "table":
        kind = {"f32": cupy.float64, "f16": cupy.float32}[case.type]
        return lambda: image.cumsum(axis=0, dtype=kind).cumsum(axis=1)
    depth = (0,) * (image.ndim - 2)
    result = cupy.empty_like(image)
    if case.operation == "box":
        side = sides(case)
        size = (side, side, *(1 for _ in depth))
        return lambda: cupyx.scipy.ndimage.uniform_filter(image, size, output=result, mode="nearest")
    sigma = (case.size, case.size, *depth)
    return lambda: cupyx.scipy.ndimage.gaussian_filter(image, sigma, output=result, mode="nearest", truncate=4)


def with_torch(case, image, _):
    """Along one axis after the other."""
    planes = planes_of(image)
    if case.operation == "table":
        kind = {"f32": torch.float64, "f16": torch.float32}[case.type]
        return lambda: picture_later(planes.cumsum(2, dtype=kind).cumsum(3))
    reach = sides(case) // 2
    functional = torch.nn.functional
    along_y, along_x = (0, 0, reach, reach), (reach, reach, 0, 0)
    if case.operation == "box":
        def box():
            rows = functional.avg_pool2d(functional.pad(planes, along_y, mode="replicate"), (2 * reach + 1, 1), stride=1)
            return picture_later(functional.avg_pool2d(functional.pad(rows, along_x, mode="replicate"), (1, 2 * reach + 1), stride=1))
        return box
    taps = torch.exp(-0.5 * (torch.arange(-reach, reach + 1, device="cuda") / case.size) ** 2)
    weights = (taps / taps.sum()).to(planes.dtype)

    def blur():
        rows = functional.conv2d(functional.pad(planes, along_y, mode="replicate"), weights.view(1, 1, -1, 1))
        return picture_later(functional.conv2d(functional.pad(rows, along_x, mode="replicate"), weights.view(1, 1, 1, -1)))
    return blur


def picture_later(planes):
    """Whoever compares wants pictures; whoever is timed does not turn them."""
    return lambda: picture_of(planes)


def with_torchvision(case, image, _):
    """Its border is mirrored, so only what the border does not reach is compared."""
    if torchvision is None or case.operation != "gaussian":
        return None
    planes = planes_of(image)
    side = sides(case)
    if side // 2 >= min(case.extents):
        return None
    return lambda: picture_later(torchvision.gaussian_blur(planes, [side, side], [float(case.size)] * 2))


def with_cvcuda(case, image, stream):
    if cvcuda is None or case.operation == "table":
        return None
    result = cupy.empty_like(image)
    source, target = (cvcuda.as_tensor(array.reshape(*case.extents, case.channels), "HWC") for array in (image, result))
    handle = cvcuda.as_stream(stream.torch)
    side = sides(case)

    def run():
        if case.operation == "box":
            cvcuda.averageblur_into(target, source, (side, side), border=cvcuda.Border.REPLICATE, stream=handle)
        else:
            cvcuda.gaussian_into(target, source, (side, side), (float(case.size),) * 2, cvcuda.Border.REPLICATE, stream=handle)
        return result
    return run


PEERS = {"cupy": with_cupy, "torch": with_torch, "torchvision": with_torchvision, "cvcuda": with_cvcuda}


def reference_of(case, image):
    """CuPy's answer from floats, or its sums in double."""
    return with_cupy(case._replace(type="f32"), image.astype(cupy.float32), None)()


def largest_difference(case, result, reference, peer):
    """Over whole images; of tables relative to the largest sum."""
    margin = sides(case) // 2 if peer == "torchvision" else 0
    inside = (slice(margin, case.extents[0] - margin), slice(margin, case.extents[1] - margin))
    result, reference = (array.astype(cupy.float64)[inside] for array in (result, reference))
    if result.shape != reference.shape:
        return float("inf")
    difference = float(cupy.abs(result - reference).max())
    return difference / float(cupy.abs(reference).max()) if case.operation == "table" else difference


class PeerTimes:
    """Measures peers, case after case, smaller images first."""

    def __init__(self, stream):
        self.stream = stream
        self.rates = {}  # (peer, operation, size, type): seconds an element

    def too_slow(self, peer, case):
        seconds = self.rates.get((peer, case.operation, case.size, case.type), 0) * numpy.prod(case.shape)
        return f"left out: {seconds:.1f} s, by the time of a smaller picture" if seconds > MOST_SECONDS else None

    def measure(self, peer, case, image, reference):
        """{us, difference from `reference`}, {refused}, or None where the library has no such call."""
        refused = self.too_slow(peer, case)
        if refused:
            return {"refused": refused}
        try:
            run = PEERS[peer](case, image, self.stream)
            if run is None:
                return None
            result = run()
            result = result() if callable(result) else result
            difference = largest_difference(case, result, reference, peer)
            del result
            seconds = self.stream.median_seconds(run)
        except Exception as error:  # each library has errors of its own; the row says which
            return {"refused": " ".join(str(error).split())[:160]}
        self.rates[peer, case.operation, case.size, case.type] = seconds / numpy.prod(case.shape)
        return {"us": round(seconds * 1e6, 1), "difference": float(f"{difference:.1e}")}

    def of(self, case):
        image = image_of(case)
        reference = reference_of(case, image)
        rows = {peer: self.measure(peer, case, image, reference) for peer in PEERS}
        cupy.get_default_memory_pool().free_all_blocks()
        torch.cuda.empty_cache()
        return {peer: row for peer, row in rows.items() if row is not None}


def run_cumulus_bench(build, cases):
    names = [f"{name}$" for case in cases for name in case.rows_of_cumulus().values()]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([f"{build}/bench/cumulus_bench", "--backend", "cuda", "--json", file.name, "--filter", *names],
                       stdout=subprocess.DEVNULL)  # what is not verified is told by the rows
        return json.load(file)


def answer_of_daemon(build, address, case, image):
    """Of the program cumulus, from a file to a file."""
    with tempfile.TemporaryDirectory() as folder:
        numpy.save(f"{folder}/in.npy", image.get())
        command, *options = case.command()
        subprocess.run([f"{build}/bin/cumulus", "--server", address, command, f"{folder}/in.npy", "-o", f"{folder}/out.npy", *options],
                       check=True, stdout=subprocess.DEVNULL)
        return cupy.asarray(numpy.load(f"{folder}/out.npy"))


def compare_whole(build, cases, rows):
    """What a daemon answers, with what CuPy makes."""
    with tempfile.TemporaryDirectory() as folder, daemon(build, folder, "cuda") as address:
        for case in cases:
            image = image_of(case)
            answer = answer_of_daemon(build, address, case, image)
            difference = largest_difference(case, answer, reference_of(case, image), "cumulus")
            rows[case.name]["cumulus_difference"] = float(f"{difference:.1e}")


def check(rows):
    """Ends the program where results are not alike."""
    wrong = []
    for name, row in rows.items():
        tolerance = TOLERANCES[name.rsplit("/", 1)[1]]
        differences = {peer: told.get("difference", 0) for peer, told in row.get("peers", {}).items()}
        differences["cumulus"] = row.get("cumulus_difference", 0)
        if "cumulus_is_wrong" in row:
            wrong.append(f"{name}: {row['cumulus_is_wrong']}")
        wrong += [f"{name}: {who} is off by {by}" for who, by in differences.items() if not by <= tolerance]
    print("\n".join(wrong) or "all results alike")
    return not wrong


def versions():
    told = [f"CuPy {cupy.__version__}", f"PyTorch {torch.__version__}"]
    if torchvision is not None:
        told.append("torchvision " + sys.modules["torchvision"].__version__)
    return told + ([f"CV-CUDA {cvcuda.__version__}"] if cvcuda is not None else [])


def add_rows_of_cumulus(rows, cases, report):
    by_name = {row["name"]: row for row in report["rows"]}
    for case in cases:
        for what, name in case.rows_of_cumulus().items():
            found = by_name.get(name)
            if found is None:
                continue
            rows[case.name][f"{what}_us"] = round(found["median_us"], 1)
            if not found["verified"]:
                rows[case.name]["cumulus_is_wrong"] = found["difference"]
            if what == "cumulus":
                rows[case.name]["copy_us"] = round(found["copy_us"], 1)


def write(path, said, rows):
    """Again and again: what is cut off in the middle leaves its rows."""
    lines = ",\n".join("  " + json.dumps({"name": name, **row}) for name, row in rows.items())
    head = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in said.items())
    path.write_text(f'{{\n{head} "rows": [\n{lines}\n ]\n}}\n', encoding="utf-8")


def options_of_command_line():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", help="the build folder, with bench/cumulus_bench, bin/cumulus and bin/cumulusd")
    arguments.add_argument("--json", required=True, help="put the rows into this file")
    arguments.add_argument("--operations", nargs="+", choices=SIZES, default=list(SIZES))
    arguments.add_argument("--extents", type=int, default=len(EXTENTS), help="only so many of the shapes, from the smallest on")
    arguments.add_argument("--channels", type=int, nargs="+", default=CHANNELS)
    arguments.add_argument("--types", choices=TYPES, nargs="+", default=list(TYPES))
    arguments.add_argument("--whole", type=int, default=1, help="of so many shapes, Cumulus's whole answers are compared too")
    arguments.add_argument("--only", choices=["peers", "times", "whole"], help="measure peers alone, measure all but compare no whole "
                           "answers of Cumulus, or compare these alone; rows that the file has are kept")
    return arguments.parse_args()


def main():
    options = options_of_command_line()
    cases = [Case(operation, size, extents, channels, kind) for operation in options.operations for size in SIZES[operation]
             for extents, channels, kind in itertools.product(EXTENTS[:options.extents], options.channels, options.types)]
    path = pathlib.Path(options.json)
    said = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"rows": []}
    rows = {case.name: {} for case in cases} | {row.pop("name"): row for row in said.pop("rows")}
    stream = Stream()
    if options.only not in ("peers", "whole"):
        report = run_cumulus_bench(options.build, cases)
        add_rows_of_cumulus(rows, cases, report)
        said = {"command": "bench/beside/gpu_peers.py build/release --json FILE", "commit": report["commit"],
                "devices": [*report["devices"], *versions()]}
        write(path, said, rows)
    if options.only != "whole":
        times = PeerTimes(stream)
        for case in cases:
            rows[case.name]["peers"] = times.of(case)
            print(case.name, json.dumps(rows[case.name]), flush=True)
            write(path, said, rows)
    if options.only in (None, "whole"):
        compare_whole(options.build, [case for case in cases if case.extents in EXTENTS[:options.whole]], rows)
    write(path, said, rows)
    sys.exit(0 if check(rows) else 1)


main()
