"""What help() and the reference show: every public name says what it is, and every operation what its arguments are."""

import inspect
import re

import cumulus
import pytest

HANDLES = (cumulus.KdTree, cumulus.RunLengths, cumulus.SamplingTable, cumulus.SummedAreaTable)
OPERATIONS = cumulus.Client.__mro__[1:3]  # of images and of structures
PLAIN = {"self", "cls", "call", "client", "path", "data"}  # one of them says nothing that its type does not


def own(kind):
    """The public methods and properties that a class defines, by name: what is documented, and its code."""
    for name, member in vars(kind).items():
        code = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(code):
            yield name, getattr(kind, name), code


def test_every_public_name_has_one():
    bare = []
    for name in cumulus.__all__:
        public = getattr(cumulus, name)
        bare += [name] if not inspect.getdoc(public) else []
        if inspect.isclass(public):
            bare += [f"{name}.{member}" for base in public.__mro__ if base.__module__.startswith("cumulus.")
                     for member, documented, _ in own(base) if not inspect.getdoc(documented)]
    assert bare == []


@pytest.mark.parametrize("kind", [*OPERATIONS, *HANDLES], ids=lambda kind: kind.__name__)
def test_arguments_are_said(kind):
    """Each by its name, unless the text says of which method's they are like."""
    unsaid = []
    for name, documented, code in own(kind):
        text = inspect.getdoc(documented)
        if not re.search(r"\bas `\w+`", text):
            unsaid += [f"{name}({argument})" for argument in inspect.signature(code).parameters
                       if argument not in PLAIN and not re.search(rf"\b{argument}\b", text)]
    assert unsaid == []
