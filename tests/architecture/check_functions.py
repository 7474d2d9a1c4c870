#!/usr/bin/env python3
"""Counts the lines and the parameters of every function that kernels/, server/ and client/ define.

    check_functions.py ROOT [--allow FILE]     prints each violation as PATH:LINE: TEXT; exits 1 if there is any

It reads tokens, not C++: a function is what a namespace, a type or a function's body has of the shape
NAME ( PARAMETERS ) ... { ... }. A function's lines go from its template's head, or its return type, to its last brace; lambdas
belong to the function around them. FILE has lines "PATH NAME" for functions that may be longer for now; an entry that no
violation needs is one itself.
"""
import argparse
import pathlib
import re
import sys

FOLDERS = ("kernels", "server", "client")
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
MAX_LINES = 60
MAX_PARAMETERS = 6

TOKEN = re.compile(r'[A-Za-z_]\w*|::|->|&&|<<|>=|<=|==|!=|[^\sA-Za-z_]')
SKIPPED = re.compile(
    r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|R"([^()\\ ]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'(?!\w)",
    re.DOTALL | re.MULTILINE)
# Parentheses behind these are no parameters.
NO_NAMES = {"__launch_bounds__", "__attribute__", "__align__", "alignas", "decltype", "requires", "noexcept", "explicit",
            "sizeof", "static_assert", "if", "for", "while", "switch", "catch", "return"}
OPENING = {"(": ")", "[": "]", "{": "}"}


def tokens_of(text):
    """[(token, line)] without comments, preprocessor's lines, and what literals say."""
    def blank(match):
        literal = match.group(0)[0] in "\"'R"
        return ("0" if literal else " ") + "\n" * match.group(0).count("\n")
    found, line, end = [], 1, 0
    text = SKIPPED.sub(blank, text)
    for match in TOKEN.finditer(text):
        line += text.count("\n", end, match.start())
        end = match.start()
        found.append((match.group(0), line))
    return found


def closing(tokens, at):
    """The index of the token that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        token = tokens[i][0]
        if token in OPENING:
            depth += 1
        elif token in OPENING.values():
            depth -= 1
            if depth == 0:
                return i
    return len(tokens) - 1


def behind_angles(tokens, at):
    """The index behind the template's head whose `<` is at `at`."""
    depth = 0
    while at < len(tokens):
        token = tokens[at][0]
        if token in OPENING:
            at = closing(tokens, at)
        elif token == "<":
            depth += 1
        elif token == ">":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at


def parameters_between(tokens, first, last):
    """How many a list has whose parentheses are at `first` and `last`."""
    if last == first + 1 or (last == first + 2 and tokens[first + 1][0] == "void"):
        return 0
    count, at = 1, first + 1
    while at < last:
        token = tokens[at][0]
        if token in OPENING:
            at = closing(tokens, at)
        elif token == "<" and re.match(r"[A-Za-z_]", tokens[at - 1][0]):
            at = behind_angles(tokens, at) - 1
        elif token == ",":
            count += 1
        at += 1
    return count


def head_before(tokens, first, last):
    """Of the tokens from `first` to before the brace at `last`: ("type" or "namespace", None),
    ("function", (name, parameters)), ("list", None) for a brace that begins a member's value, or ("other", None)."""
    at = first
    while at < last and tokens[at][0] == "template":
        at = behind_angles(tokens, at + 1)
    name, parameters, is_value = None, None, False
    while at < last:
        token = tokens[at][0]
        if parameters is None:
            if token in ("namespace", "extern"):
                return ("namespace", None)
            if token in ("class", "struct", "union", "enum"):
                return ("type", None)
            if token == "=" and tokens[at - 1][0] != "operator":
                return ("other", None)
            if token == "operator":
                name = "operator"
                if tokens[at + 1][0] == "(":
                    at += 2  # operator()
            elif re.match(r"[A-Za-z_]", token) and name != "operator":
                name = token
            elif token == "[" and name != "operator":
                return ("other", None)
        if token == "(":
            end = closing(tokens, at)
            previous = tokens[at - 1][0]
            if parameters is None and previous not in NO_NAMES and name is not None:
                parameters = parameters_between(tokens, at, end)
            at = end
        elif token in ("[", "{"):
            at = closing(tokens, at)
        elif token == ":" and parameters is not None:
            is_value = True
        at += 1
    if parameters is None:
        return ("other", None)
    begins_value = is_value and tokens[last - 1][0] not in (")", "}")
    return ("list", None) if begins_value else ("function", (name, parameters))


def functions_of(tokens):
    """[(name, parameters, line, lines)]"""
    functions = []

    def read(at, last):
        first = at
        while at < last:
            token = tokens[at][0]
            if token == ";":
                first = at + 1
            elif token in ("(", "["):
                at = closing(tokens, at)
            elif token in ("public", "private", "protected") and tokens[at + 1][0] == ":":
                at += 1
                first = at + 1
            elif token == "{":
                end = closing(tokens, at)
                kind, about = head_before(tokens, first, at)
                if kind == "function":
                    line = tokens[first][1]
                    functions.append((*about, line, tokens[end][1] - line + 1))
                if kind in ("namespace", "type"):
                    read(at + 1, end)
                elif kind == "function":
                    read_types(at + 1, end)
                at = end
                if kind != "list":
                    first = at + 1
            at += 1

    def read_types(at, last):
        """The functions of types within a body."""
        while at < last:
            if tokens[at][0] in ("struct", "class"):
                start = at
                while at < last and tokens[at][0] not in ("{", ";", "(", ")", ",", ">", "="):
                    at += 1
                if at < last and tokens[at][0] == "{" and at > start:
                    end = closing(tokens, at)
                    read(at + 1, end)
                    at = end
            at += 1

    read(0, len(tokens))
    return functions


def violations_of(root, allowed):
    used, found, count = set(), [], 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            short = path.relative_to(root).as_posix()
            for name, parameters, line, lines in functions_of(tokens_of(path.read_text(encoding="utf-8"))):
                count += 1
                texts = []
                if lines > MAX_LINES:
                    texts.append(f"{name} has {lines} lines; at most {MAX_LINES} is right: give its parts names")
                if parameters > MAX_PARAMETERS:
                    texts.append(f"{name} has {parameters} parameters; at most {MAX_PARAMETERS} is right: "
                                 "those that go together make a struct")
                if texts and (short, name) in allowed:
                    used.add((short, name))
                else:
                    found += [f"{short}:{line}: {text}" for text in texts]
    found += [f"{path}:1: {name} keeps the limits, or is gone: take it off the list of exceptions"
              for path, name in sorted(allowed - used)]
    return found, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--allow", type=pathlib.Path)
    arguments = parser.parse_args()
    allowed = set()
    if arguments.allow is not None:
        lines = arguments.allow.read_text(encoding="utf-8").splitlines()
        allowed = {tuple(line.split()) for line in lines if line.strip() and not line.startswith("#")}
    found, count = violations_of(arguments.root, allowed)
    if count == 0:
        sys.exit(f"{arguments.root}: no function in {', '.join(FOLDERS)}; give the root of the tree")
    print("\n".join(found) if found else f"{count} functions keep the limits")
    sys.exit(1 if found else 0)


main()
