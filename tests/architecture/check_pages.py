#!/usr/bin/env python3
"""Holds what pages promise: that operations' pages stay short, and that results and the pages that cite them go together.

    check_pages.py ROOT     prints each violation as PATH:LINE: TEXT; exits 1 if there is any

Every page of docs/operations has at most MAX_LINES lines. Every file below bench/results is named by a page or by what draws it, in
full or by its beginning and "..."; every dated result that a page names is there.
"""
import pathlib
import re
import sys

MAX_LINES = 250
BEGINNING = re.compile(r"(?<![\w.{}*-])(\w[\w-]{7,}_)[.]{3}")
RESULT = re.compile(r"(?<![\w.{}*-])\w[\w.-]*\d{4}-\d\d-\d\d[\w-]*\.(?:json|txt|csv)\b")


def texts_of(root):
    """{path: text} of what may name a result."""
    paths = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "bench").rglob("*.md"),
             *(root / "bench").rglob("*.py"), *(root / "tests").rglob("*.py"), *(root / "tests").rglob("*.cc")]
    own = pathlib.Path(__file__).resolve().parent
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(set(paths)) if path.resolve().parent != own}


def violations_of(root):
    texts = texts_of(root)
    results = [path for path in sorted((root / "bench" / "results").rglob("*")) if path.is_file()]
    names = {path.name for path in results}
    found, named, beginnings = [], set(), set()
    for path, text in texts.items():
        for at, line in enumerate(text.splitlines(), 1):
            if path.startswith("docs/operations/") and at == MAX_LINES + 1:
                found.append(f"{path}:{at}: more than {MAX_LINES} lines; figures and what was tried have pages of their own")
            cited = RESULT.findall(line)
            named.update(cited)
            beginnings.update(BEGINNING.findall(line))
            if path.endswith(".md"):
                found += [f"{path}:{at}: {name} is not in bench/results" for name in cited if name not in names]
    undated = "\n".join(texts.values())
    for path in results:
        is_named = path.name in named if RESULT.fullmatch(path.name) else path.name in undated
        if not is_named and not path.name.startswith(tuple(beginnings)):
            found.append(f"{path.relative_to(root).as_posix()}:1: no page names it; name it, or delete it")
    return found, len(results)


def main():
    root = pathlib.Path(sys.argv[1])
    if not (root / "docs" / "operations").is_dir():
        sys.exit(f"{root}: no docs/operations here; give the root of the tree")
    found, count = violations_of(root)
    print("\n".join(found) if found else f"pages are short, and name each of {count} results")
    sys.exit(1 if found else 0)


main()
