#!/usr/bin/env python3
"""Plants one violation of each rule in a small tree and expects check_pages.py to name it, and nothing else.

    check_pages_test.py CHECK_PAGES
"""
import pathlib
import re
import subprocess
import sys
import tempfile

CHECK = sys.argv[1]
RESULT = "blur_h200_2026-11-28.json"
failures = []


def expect(what, files, pattern, status=1):
    with tempfile.TemporaryDirectory() as tree:
        for path, text in files.items():
            (pathlib.Path(tree) / path).parent.mkdir(parents=True, exist_ok=True)
            (pathlib.Path(tree) / path).write_text(text, encoding="utf-8")
        result = subprocess.run([sys.executable, CHECK, tree], capture_output=True, text=True, check=False)
    found = result.stdout.splitlines()
    if result.returncode != status or len(found) != 1 or not re.search(pattern, found[0]):
        failures.append(f"{what}: expected exit {status} and one line /{pattern}/; "
                        f"got {result.returncode} and: {result.stdout}{result.stderr}")


def tree(page):
    return {"docs/operations/blur.md": page}


def with_result(page, name=RESULT):
    return {**tree(page), f"bench/results/blur/{name}": "{}"}


expect("a page of 251 lines", tree("line\n" * 251), r"^docs/operations/blur\.md:251: more than 250 lines")
expect("a result that no page names", with_result("Nothing."), rf"^bench/results/blur/{RESULT}:1: no page names it")
expect("a result that is named in part", with_result("blur_, box_h200 of the day"), "no page names it")
expect("a result by too little of its beginning", with_result("blur_..."), "no page names it")
expect("a result whose name ends another's", {**with_result(f"fast_{RESULT}"), f"bench/results/blur/fast_{RESULT}": ""},
       rf"^bench/results/blur/{RESULT}:1: no page names it")
expect("a page that names what is not there", tree(f"rows\n[rows](../../bench/results/blur/{RESULT})"),
       rf"^docs/operations/blur\.md:2: {RESULT} is not in bench/results")

expect("a page of 250 lines", tree("line\n" * 250), "^pages are short", status=0)
expect("a result that a page names", with_result(f"([rows](../../bench/results/blur/{RESULT}))"), "name each of 1", status=0)
expect("a result by its beginning", with_result("(blur_h200_...)"), "name each of 1", status=0)
expect("a result without a date", with_result("See before.txt.", "before.txt"), "name each of 1", status=0)
expect("a pattern of names", tree("bench/results/blur/*_2026-11-28.json"), "^pages are short", status=0)

with tempfile.TemporaryDirectory() as empty:
    if subprocess.run([sys.executable, CHECK, empty], capture_output=True, check=False).returncode == 0:
        failures.append("a tree without pages was accepted")

print("\n".join(failures) if failures else "every planted violation was found")
sys.exit(1 if failures else 0)
