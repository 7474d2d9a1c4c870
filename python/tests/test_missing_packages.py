"""What is said where a package that a part of the client needs is not installed."""

import importlib
import sys
import types

import pytest


@pytest.mark.parametrize("missing", ["drjit", "mitsuba"])
def test_mitsuba(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, "drjit", types.ModuleType("drjit"))
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "cumulus.mitsuba", raising=False)
    with pytest.raises(ModuleNotFoundError, match=f"no {missing} here: pip install mitsuba") as refused:
        importlib.import_module("cumulus.mitsuba")
    assert refused.value.name == missing


def test_scikit_learn(client, monkeypatch):
    tree = client.kd_tree([[0.0, 0.0], [1.0, 1.0]])
    monkeypatch.setitem(sys.modules, "sklearn.neighbors", None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        tree.to_sklearn()
