#!/usr/bin/env python3
"""Plants one violation of each rule in a small tree and expects check_kernels.py to name it, and nothing else.

    check_kernels_test.py CHECK_KERNELS
"""
import pathlib
import re
import subprocess
import sys
import tempfile

CHECK = sys.argv[1]
HEAD = ["/// Owns: a thread one pixel. Reads: it.", "/// Writes: it.", "/// Waits for: nothing, so that it cannot deadlock.",
        "/// Source: none, a map."]
KERNEL = ["template <class T>", "__global__ void __launch_bounds__(32)", "    blur(T* pixels,", "         int count) {", "}"]
failures = []


def expect(what, lines, pattern, *, path="kernels/blur/blur.cu", status=1):
    with tempfile.TemporaryDirectory() as tree:
        root = pathlib.Path(tree)
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text("\n".join(lines) + "\n", encoding="utf-8")
        result = subprocess.run([sys.executable, CHECK, tree], capture_output=True, text=True, check=False)
    found = result.stdout.splitlines()
    if result.returncode != status or len(found) != 1 or not re.search(pattern, found[0]):
        failures.append(f"{what}: expected exit {status} and one line /{pattern}/; "
                        f"got {result.returncode} and: {result.stdout}{result.stderr}")


def accept(what, lines, path="kernels/blur/blur.cu"):
    expect(what, lines, "^1 kernels say", path=path, status=0)


for word, name in [("Owns:", "owns"), ("Reads:", "reads"), ("Writes:", "writes"), ("Waits for:", "waits for"),
                   ("deadlock", "why it cannot deadlock"), ("Source:", "its source")]:
    without = [line.replace(word, "") for line in HEAD]
    expect(f"a kernel without {word}", without + KERNEL, rf"^kernels/blur/blur\.cu:6: .* does not say {name}$")
expect("a kernel without a comment", KERNEL, "does not say owns, reads, writes, waits for, why it cannot deadlock, its source$")
expect("a comment that another function has between", HEAD + ["void host() {", "}"] + KERNEL, r"blur\.cu:8: .* owns, ")
expect("a division rounded up", HEAD + KERNEL + ["int b = (count + side - 1) / side;"], r'blur\.cu:10: "\+ side - 1\) / side"')
expect("a division by a member rounded up", HEAD + KERNEL + ["int b = (count + tile_.side - 1) / tile_.side;"],
       r'blur\.cu:10: "\+ tile_\.side - 1\) / tile_\.side" is divide_up')
expect("a division by a number rounded up", HEAD + KERNEL + ["int b = (count + 31) / 32 * 32;"],
       r'blur\.cu:10: "\+ 31\) / 32" is divide_up')
expect("a shift rounded up", HEAD + KERNEL + ["int b = (count + 31u) >> 5;"], r'blur\.cu:10: "\+ 31u\) >> 5" is divide_up')
expect("a full mask", HEAD + KERNEL + ["int any = __any_sync(0xffffffffu, x);"], r"blur\.cu:10: .* is kFullWarp")
expect("a mask of ones", HEAD + KERNEL + ["int y = __shfl_sync(~0u, x, 0);"], r"blur\.cu:10: .* is kFullWarp")
expect("a macro", HEAD + KERNEL + ["#define BLUR_HOST_DEVICE __host__"], r"blur\.cu:10: .* is CUMULUS_HOST_DEVICE")

accept("a kernel with all parts", HEAD + KERNEL)
accept("parts in small letters", [line.lower() for line in HEAD] + KERNEL)
accept("a declaration", HEAD + KERNEL + ["__global__ void other(int count);"])
accept("words about kernels", HEAD + KERNEL + ["// A __global__ function, and (count + side - 1) / side."])
accept("another divisor", HEAD + KERNEL + ["int b = (count + side - 1) / other;"])
accept("a middle", HEAD + KERNEL + ["int b = (first + last + 1) / 2;"])
accept("another number", HEAD + KERNEL + ["int b = (count + 3) / 32;"])
accept("a primitive", HEAD + KERNEL + ["int b = (count + side - 1) / side;"], path="kernels/primitives/div.cuh")
accept("an installed header", HEAD + KERNEL + ["int b = (count + side - 1) / side;"], path="kernels/blur/include/blur.h")

with tempfile.TemporaryDirectory() as empty:
    if subprocess.run([sys.executable, CHECK, empty], capture_output=True, check=False).returncode == 0:
        failures.append("a tree without kernels was accepted")

print("\n".join(failures) if failures else "every planted violation was found")
sys.exit(1 if failures else 0)
