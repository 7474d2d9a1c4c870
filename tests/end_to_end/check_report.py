#!/usr/bin/env python3
"""Holds JSON objects, one on each line of standard input, against a JSON schema: as much of draft 7 as docs/report.schema.json
takes. Exits with 1 and says where, if one does not fit."""
import json
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "number": (int, float), "integer": int}


def resolve(schema, root):
    place = root
    for step in schema.get("$ref", "#").lstrip("#/").split("/"):
        place = place[step] if step else place
    return place if "$ref" in schema else schema


def problems(value, schema, root, where):
    schema = resolve(schema, root)
    if "oneOf" in schema:
        fits = sum(not list(problems(value, one, root, where)) for one in schema["oneOf"])
        if fits != 1:
            yield f"{where}: {value!r} fits {fits} of {len(schema['oneOf'])}"
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        yield f"{where}: {value!r} is no {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{where}: {value!r} is below {schema['minimum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}.{name} is missing"
        others = schema.get("additionalProperties", True)
        for name, member in value.items():
            inner = schema.get("properties", {}).get(name, others)
            if inner is False:
                yield f"{where}.{name} is not in the schema"
            elif inner is not True:
                yield from problems(member, inner, root, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for index, member in enumerate(value):
            yield from problems(member, schema["items"], root, f"{where}[{index}]")


def no_constant(text):
    raise ValueError(f"{text} is no JSON")


def unique(pairs):
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise ValueError(f"a member stands twice in {names}")
    return dict(pairs)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    found = []
    for line in sys.stdin.buffer:
        report = json.loads(line.decode("utf-8"), parse_constant=no_constant, object_pairs_hook=unique)
        found += [f"{problem} in {line!r}" for problem in problems(report, schema, schema, "$")]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
