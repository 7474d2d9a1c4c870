#!/usr/bin/env python3
"""Which sources can be compiled as one: those whose unnamed namespaces declare nothing alike.

  scripts/source_groups.py AT_MOST FILE...

Prints a line for each file, the number of its group and the file; a group has at most AT_MOST files. Goes by the look of
lines at a namespace's level, so that a clash elsewhere, such as of macros, is left to the compiler.
"""
import os
import pathlib
import re
import sys

UNNAMED_NAMESPACE = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
# What a line at a namespace's level declares: an alias of something; or a type, a variable, or a function with its
# parameters.
DECLARED = re.compile(
    r"^(?!namespace|using namespace|.*__launch_bounds__)(?:using (?P<alias>\w+) = (?P<of>.*)"
    r"|(?:struct|class|enum class|union) (?P<type>\w+)|[\w:].*?[ &*>](?P<other>\w+(?= ?[={\[])|\w+\(.*))",
    re.MULTILINE)


def names_in(file):
    """What the file's unnamed namespaces declare, by the look of their lines, and what each stands for."""
    names = {}
    if os.path.relpath(file).startswith("examples/"):
        names["main"] = file
    for text in UNNAMED_NAMESPACE.findall(pathlib.Path(file).read_text()):
        for found in DECLARED.finditer(text):
            # Two files may have the same alias; all else is a file's own.
            names[found["alias"] or found["type"] or found["other"]] = found["of"] or file
    return names


def groups_of(files, at_most):
    """Lists of files whose names do not clash, at most so many in each; a file goes into the first that takes it."""
    groups = []  # (files, names)
    for file in files:
        names = names_in(file)
        for group in groups:
            if len(group[0]) < at_most and all(group[1].get(name, of) == of for name, of in names.items()):
                break
        else:
            group = ([], {})
            groups.append(group)
        group[0].append(file)
        group[1].update(names)
    return [joined for joined, _ in groups]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for number, joined in enumerate(groups_of(sys.argv[2:], int(sys.argv[1]))):
        for source in joined:
            print(number, source)
