#!/usr/bin/env python3
"""Entries that are wrong in one way each are found by faults.py, and switches have both sides."""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
import faults  # noqa: E402

SOURCE = "int f(int a) {\n  if (a < 0) return 1;\n  log(a);\n  log(a);\n  return a + 1;\n}\n"


def problems_of(entry):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {"CMakeLists.txt": "", "tests/CMakeLists.txt": "cumulus_test(NAME a_test\n", "a.cc": SOURCE,
                           f"{faults.FOLDER}/part.toml": f"[[fault]]\n{entry}\n"}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return faults.check(root)


def entry(name="part/a", file="a.cc", right="a + 1", wrong="a", tests="a_test", more=""):
    return f"name = '{name}'\nfile = '{file}'\nright = '{right}'\nwrong = '{wrong}'\ntests = '{tests}'\n{more}"


def main():
    assert problems_of(entry()) == [], problems_of(entry())
    wrong = [entry(right="a + 2"), entry(right="log(a);"), entry(file="b.cc"), entry(name="other/a"), entry(tests="b_test"),
             entry(wrong=""), entry(more="unknown = 1"), entry(right="if (a < 0)", wrong="if (false)"), entry(right="f(int a", wrong="f("),
             entry(right="a, 1", wrong="a, 2")]
    for each in wrong:
        assert len(problems_of(each)) == 1, (each, problems_of(each))

    def fault(right, bad):
        return faults.Fault(f"part/{right}{bad}", "a.cc", right, bad, ("a_test",), "statement" if right[-1] in ";}" else "expression", "")
    both = faults.with_switches(SOURCE, [fault("a < 0", "false"), fault("if (a < 0) return 1;", ""), fault("a < 0", "true")])
    assert both.count("cumulus_planted::on(") == 3 and "? (false) :" in both and "? (true) :" in both, both
    try:
        faults.with_switches(SOURCE, [fault("return 1;\n  log(a);", ""), fault("if (a < 0) return 1;", "")])
    except faults.BadEntry:
        return 0
    raise AssertionError("faults that overlap are not found")


if __name__ == "__main__":
    sys.exit(main())
