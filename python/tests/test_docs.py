"""What docs/python.md, README and tour.py show runs, as it stands there."""

import gc
import re

import cumulus
from conftest import ROOT
from local_daemon import regions_in


def blocks(text):
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def run(code, folder, monkeypatch):
    """And leaves no client open, which would keep its memory for as long as functions of the code refer to it and each other."""
    monkeypatch.chdir(folder)
    names = {"__name__": "docs"}
    before = regions_in("self")
    try:
        exec(compile(code, "<docs>", "exec"), names)
    finally:
        for value in list(names.values()):
            if isinstance(value, cumulus.Client):
                value.close()
        names.clear()
        gc.collect()
    assert regions_in("self") <= before


def test_the_page_of_python(tmp_path, monkeypatch, capsys):
    run(blocks((ROOT / "docs" / "python.md").read_text(encoding="utf-8")), tmp_path, monkeypatch)
    assert " sigma is 0.1; 0.5 to 10000 pixels is right" in capsys.readouterr().out


def test_readme(tmp_path, monkeypatch):
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## In Python\n")[1].split("\n## ")[0]
    code = blocks(section)
    assert "cumulus.connect()" in code
    run(code, tmp_path, monkeypatch)


def test_the_tour(tmp_path, monkeypatch, capsys):
    run((ROOT / "python" / "tests" / "tour.py").read_text(encoding="utf-8"), tmp_path, monkeypatch)
    assert "the tour is over" in capsys.readouterr().out
