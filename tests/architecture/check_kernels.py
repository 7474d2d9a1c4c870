#!/usr/bin/env python3
"""Holds what every kernel says of itself, and that primitives have one copy.

    check_kernels.py ROOT     prints each violation as PATH:LINE: TEXT; exits 1 if there is any

The comment right above a __global__ function has the parts of PARTS (docs/glossary.md, CONTRIBUTING.md). What kernels/core and
kernels/primitives define is not written again elsewhere in kernels/: rounding a division up, the mask of a full warp,
CUMULUS_HOST_DEVICE. Installed headers (include/) may: they are used without the rest.
"""
import pathlib
import re
import sys

SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
PARTS = {"owns": r"\bowns:", "reads": r"\breads:", "writes": r"\bwrites:", "waits for": r"\bwaits for:",
         "why it cannot deadlock": r"\bdeadlock\b", "its source": r"\bsource:"}
COPIES = {
    r"\+ ([\w.]+(?:->[\w.]+)*) - 1\) / \1(?![\w.(]|->)": "is divide_up of kernels/core/div.h",
    r"_sync\((?:0x[fF]{8}[uU]?|~0[uU]?|-1)\s*,": "is kFullWarp of kernels/primitives/warp.cuh",
    r"#\s*define\s+\w*HOST_DEVICE\b": "is CUMULUS_HOST_DEVICE of kernels/core/host_device.h",
}
# (count + 31) / 32 and (count + 31) >> 5; (first + last + 1) / 2 is a middle.
ROUNDED_UP = re.compile(r"\+ (\d+)[uU]?\) (/|>>) (\d+)\b")


def rounds_up_by_a_number(line):
    """The match, or None."""
    for match in ROUNDED_UP.finditer(line):
        by = int(match[3]) if match[2] == "/" else 1 << int(match[3])
        if by > 2 and int(match[1]) == by - 1:
            return match
    return None


def is_comment(line):
    return line.lstrip().startswith("//")


def is_definition(lines, at):
    """Whether the function whose head begins in line `at` has a body."""
    for line in lines[at:]:
        end = re.search(r"[{;]", line)
        if end:
            return end.group() == "{"
    return False


def comment_above(lines, at):
    """In one line, of the function whose __global__ is in line `at`; its template's head is between the two."""
    above = at - 1
    while above >= 0 and lines[above].strip() and not is_comment(lines[above]) and not re.search(r"[;}]", lines[above]):
        above -= 1
    end = above + 1
    while above >= 0 and is_comment(lines[above]):
        above -= 1
    return " ".join(line.strip().lstrip("/").strip() for line in lines[above + 1:end])


def violations_of(path, lines):
    """[(line, text)] and the number of kernels."""
    found, kernels = [], 0
    shared = path.startswith(("kernels/core/", "kernels/primitives/")) or "/include/" in path
    for at, line in enumerate(lines):
        if is_comment(line):
            continue
        if re.search(r"\b__global__\b", line) and is_definition(lines, at):
            kernels += 1
            comment = comment_above(lines, at)
            missing = [part for part, pattern in PARTS.items() if not re.search(pattern, comment, re.IGNORECASE)]
            if missing:
                found.append((at + 1, "the comment above the kernel does not say " + ", ".join(missing)))
        copies = [(re.search(pattern, line), text) for pattern, text in COPIES.items()]
        copies.append((rounds_up_by_a_number(line), "is divide_up of kernels/core/div.h"))
        found += [(at + 1, f'"{copy.group()}" {text}') for copy, text in copies if copy and not shared]
    return found, kernels


def main():
    root = pathlib.Path(sys.argv[1])
    found, count = [], 0
    for path in sorted((root / "kernels").rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            short = path.relative_to(root).as_posix()
            violations, kernels = violations_of(short, path.read_text(encoding="utf-8").splitlines())
            found += [f"{short}:{line}: {text}" for line, text in violations]
            count += kernels
    if count == 0:
        sys.exit(f"{root}: no kernel in kernels/; give the root of the tree")
    print("\n".join(found) if found else f"{count} kernels say what they own, read, write and wait for")
    sys.exit(1 if found else 0)


main()
