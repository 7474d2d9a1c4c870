#!/usr/bin/env python3
"""Plants one function beyond each limit in a small tree and expects check_functions.py to name it, and nothing else.

    check_functions_test.py CHECK_FUNCTIONS
"""
import pathlib
import re
import subprocess
import sys
import tempfile

CHECK = sys.argv[1]
SEVEN = "int a, float b, std::map<int, int> c, const char* d, int (&e)[3], Value f = {1, 2}, bool g = max(1, 2)"
SIX = SEVEN.rsplit(", bool g", 1)[0]
failures = []


def lines(count):
    return "  work();  // }\n" * count


def run(code, path, allowed):
    with tempfile.TemporaryDirectory() as tree:
        root = pathlib.Path(tree)
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(code, encoding="utf-8")
        (root / "allowed.txt").write_text(allowed, encoding="utf-8")
        return subprocess.run([sys.executable, CHECK, str(root), "--allow", str(root / "allowed.txt")],
                              capture_output=True, text=True, check=False)


def expect(what, code, pattern, *, path="kernels/blur/blur.cu", allowed="", status=1):
    result = run(code, path, allowed)
    found = result.stdout.splitlines()
    if result.returncode != status or len(found) != 1 or not re.search(pattern, found[0]):
        failures.append(f"{what}: expected exit {status} and one line /{pattern}/; "
                        f"got {result.returncode} and: {result.stdout}{result.stderr}")


def reject(what, code, name, limit, **more):
    path = more.get("path", "kernels/blur/blur.cu")
    expect(what, code, rf"^{path}:\d+: {name} has \d+ {limit}", **more)


def accept(what, code, count, **more):
    expect(what, code, rf"^{count} functions keep the limits$", status=0, **more)


reject("a long function", "void blur() {\n" + lines(59) + "}\n", "blur", "lines")
reject("a long function's head counts", "template <class T>\nvoid\nblur() {\n" + lines(57) + "}\n", "blur", "lines")
reject("a long member", "namespace a {\nstruct B {\n int c{3};\n void d() const {\n" + lines(59) + "}\n};\n}\n", "d", "lines")
reject("a long constructor", "A::A(int b)\n : b_{b}, c_(b) {\n" + lines(59) + "}\n", "A", "lines")
reject("a long member of a local type", "void a() {\n struct B {\n void c(" + SEVEN + ") {}\n };\n}\n", "c", "parameters")
reject("a long operator()", "struct A {\n void operator()() const {\n" + lines(59) + "}\n};\n", "operator", "lines")
reject("seven parameters", f"void blur({SEVEN}) {{}}\n", "blur", "parameters")
reject("a template's", f"template <class T, int kN = f(1)>\n__device__ void blur({SEVEN}) {{}}\n", "blur", "parameters")
reject("a kernel's", f"__global__ void __launch_bounds__(kThreads, blocks(3)) blur({SEVEN}) {{}}\n", "blur", "parameters")
reject("of the server", f"void blur({SEVEN}) {{}}\n", "blur", "parameters", path="server/pipeline/call.cc")
reject("of the client", f"void blur({SEVEN}) {{}}\n", "blur", "parameters", path="client/library/call.h")
expect("an entry for nothing", "void blur() {}\n", r"^kernels/a\.h:1: blur keeps the limits", allowed="kernels/a.h blur\n")

accept("as long as allowed", "void blur() {\n" + lines(58) + "}\n", 1)
accept("six parameters", f"void blur({SIX}) {{}}\nint most(void) {{ return 3; }}\n", 2)
accept("calls, types and tables", f"struct A {{\n{lines(70)}void b() {{ call(1, 2, 3, 4, 5, 6, 7); }}\n}};\n"
       "const int c[] = {\n" + "1,\n" * 70 + "};\n", 1)
accept("braces in literals and comments", "void a() { f(\"{\", '{', R\"(})\"); /* { */ }\n#define B(x) {\n" * 2, 2)
accept("a function on the list", f"void blur({SEVEN}) {{}}\n", 1, allowed="# why\nkernels/blur/blur.cu blur\n")

with tempfile.TemporaryDirectory() as empty:
    if subprocess.run([sys.executable, CHECK, empty], capture_output=True, check=False).returncode == 0:
        failures.append("a tree without functions was accepted")
print("\n".join(failures) if failures else "every planted violation was found")
sys.exit(1 if failures else 0)
