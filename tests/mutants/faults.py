#!/usr/bin/env python3
"""The planted faults of this folder: reads them, checks that they are current, and puts them into sources.

    faults.py ROOT      says which entries of ROOT/tests/mutants/*.toml no longer fit the sources; exits 1 if any does

README.md beside this file says what an entry has.
"""
import dataclasses
import pathlib
import re
import sys
import tomllib
import zlib

FOLDER = "tests/mutants"
KEYS = {"name", "file", "right", "wrong", "tests", "as", "own_build", "survives"}

# Before the text of each file that has a fault. Asked for late: decoders work before main, while globals are
# initialised. The pragmas: the branches of a switch need not be good code.
PRELUDE = """#ifndef CUMULUS_PLANTED_FAULTS
#define CUMULUS_PLANTED_FAULTS
#include <cstdlib>
namespace cumulus_planted {
inline unsigned long named_fault() {
  const char* name = std::getenv("CUMULUS_PLANTED_FAULT");
  return name != nullptr ? std::strtoul(name, nullptr, 10) : 0UL;
}
inline bool on(unsigned long fault) {
  static const unsigned long chosen = named_fault();
  return fault == chosen;
}
}  // namespace cumulus_planted
#endif
"""
UNCHECKED = ("unused-variable", "unused-parameter", "unused-but-set-variable", "unused-value", "unused-result",
             "dangling-else", "empty-body", "return-type", "conversion", "sign-conversion", "shadow", "parentheses",
             "sign-compare", "implicit-fallthrough", "maybe-uninitialized", "unused-function", "misleading-indentation",
             "unused-local-typedefs", "duplicated-branches", "type-limits", "extra", "array-bounds", "stringop-overflow")
PRAGMAS = "".join(f'#pragma GCC diagnostic ignored "-W{name}"\n' for name in UNCHECKED)


class BadEntry(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    file: str
    right: str
    wrong: str
    tests: tuple
    form: str  # "expression", "statement", or "text": a build of its own
    survives: str

    @property
    def part(self):
        return self.name.split("/")[0]

    @property
    def number(self):
        """Of the name alone, so that a new entry changes the text of no other."""
        return zlib.crc32(self.name.encode()) or 1

    def switch(self, right):
        """The code that has both, `right` being the right lines with the faults that lie within them."""
        if self.form == "expression":
            return f"(cumulus_planted::on({self.number}ul) ? ({self.wrong}) : ({right}))"
        return f"if (cumulus_planted::on({self.number}ul)) {{ {self.wrong}\n}} else {{ {right}\n}}"


def is_whole(form, code):
    """Whether code can stand in a switch, as far as brackets and first words tell."""
    code = re.sub(r"'.'|\"[^\"]*\"", "", code)
    first_word = re.match(r"\w*", code.strip()).group()
    if form == "statement":
        return first_word not in ("const", "auto", "else")
    choices = code.count("?") == len(re.findall("(?<!:):(?!:)", code))
    outside = code
    while outside != (outer := re.sub(r"\([^()]*\)|\[[^][]*\]|{[^{}]*}|<[^<>]*>", "", outside)):
        outside = outer
    return (choices and not re.search(r"[][(){},]", outside) and not code.startswith("({")
            and first_word not in ("if", "for", "while", "return"))


def parse_entry(entry, where):
    unknown = set(entry) - KEYS
    missing = {"name", "file", "right", "wrong", "tests"} - set(entry)
    if unknown or missing:
        raise BadEntry(f"{where}: unknown {sorted(unknown)}, missing {sorted(missing)}; README.md lists the keys")
    right, wrong = entry["right"].strip("\n"), entry["wrong"].strip("\n")
    guess = "statement" if right.rstrip().endswith((";", "}")) else "expression"
    form = "text" if entry.get("own_build") else entry.get("as", guess)
    if form not in ("expression", "statement", "text"):
        raise BadEntry(f"{where}: as = '{form}'; expression or statement is right")
    if form == "expression" and not wrong.strip():
        raise BadEntry(f"{where}: an expression that is replaced by nothing; write the wrong one")
    if form != "text" and not (is_whole(form, right) and is_whole(form, wrong)):
        raise BadEntry(f"{where}: not a whole {form}; take all of one, or say as = or own_build = true")
    tests = entry["tests"]
    return Fault(entry["name"], entry["file"], right, wrong, tuple([tests] if isinstance(tests, str) else tests), form,
                 entry.get("survives", ""))


def read_faults(root):
    faults, problems = [], []
    for path in sorted((root / FOLDER).glob("*.toml")):
        for i, entry in enumerate(tomllib.loads(path.read_text()).get("fault", [])):
            where = f"{FOLDER}/{path.name}: {entry.get('name', f'entry {i + 1}')}"
            try:
                fault = parse_entry(entry, where)
                if fault.part != path.stem:
                    raise BadEntry(f"{where}: its name has to begin with '{path.stem}/'")
                faults.append(fault)
            except BadEntry as error:
                problems.append(str(error))
    return faults, problems


def place_of(fault, text):
    """Where the right lines lie in `text`."""
    count = text.count(fault.right)
    if count != 1:
        raise BadEntry(f"{fault.name}: its right lines occur {count} times in {fault.file}, which has to be once; "
                       "bring the entry up to date with the source, or take it out")
    begin = text.index(fault.right)
    return begin, begin + len(fault.right)


def nested(placed):
    """[(begin, end, fault, children)] of placed faults, of which each lies within another or beside it."""
    top = []
    for begin, end, fault in sorted(placed, key=lambda p: (p[0], -p[1])):
        siblings = top
        while siblings and siblings[-1][0] <= begin and end <= siblings[-1][1]:
            siblings = siblings[-1][3]
        if siblings and begin < siblings[-1][1]:
            raise BadEntry(f"{fault.name}: its right lines overlap with those of {siblings[-1][2].name}; take whole lines")
        siblings.append((begin, end, fault, []))
    return top


def render(text, begin, end, nodes):
    out = []
    for first, last, fault, children in nodes:
        out += [text[begin:first], fault.switch(render(text, first, last, children))]
        begin = last
    return "".join(out) + text[begin:end]


def with_switches(text, faults):
    """The file's text with every one of `faults` beside what is right."""
    nodes = nested([(*place_of(fault, text), fault) for fault in faults])
    return f"{PRELUDE}{PRAGMAS}#line 1\n{render(text, 0, len(text), nodes)}" if nodes else text


def known_tests(root):
    """The programs that tests/CMakeLists.txt declares."""
    text = (root / "tests/CMakeLists.txt").read_text()
    operations = re.findall(r"^add_operation\((\w+)\)", (root / "CMakeLists.txt").read_text(), re.MULTILINE)
    return set(re.findall(r"cumulus_test\(NAME (\w+)", text)) | {f"{name}_kernel_test" for name in operations}


def check(root):
    faults, problems = read_faults(root)
    programs = known_tests(root)
    by_file = {}
    names = set()
    for fault in faults:
        by_file.setdefault(fault.file, []).append(fault)
        if fault.name in names:
            problems.append(f"{fault.name}: there are two of this name")
        names.add(fault.name)
        if not fault.tests:
            problems.append(f"{fault.name}: it names no tests")
        for test in fault.tests:
            if test.split()[0] not in programs:
                problems.append(f"{fault.name}: tests/CMakeLists.txt has no program '{test.split()[0]}'")
    for file, of_file in by_file.items():
        if not (root / file).is_file():
            problems.append(f"{of_file[0].name}: there is no file {file}")
            continue
        text = (root / file).read_text()
        try:
            with_switches(text, [fault for fault in of_file if fault.form != "text"])
            for fault in of_file:
                place_of(fault, text)
        except BadEntry as error:
            problems.append(str(error))
    return problems


def main():
    root = pathlib.Path(sys.argv[1])
    problems = check(root)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
