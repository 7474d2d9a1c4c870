"""That other packages' answers are as near as docs/agreement.md says, on noise and on real data."""

import numpy as np
import pytest
from conftest import ROOT

for package in ("cv2", "mitsuba", "pycocotools", "scipy", "sklearn"):
    pytest.importorskip(package)

import agreement  # noqa: E402
from agreement_cases import PEERS  # noqa: E402

CASES = [case for cases in PEERS.values() for case in cases]
DATASETS = {"noise": agreement.generated(), "real": agreement.real()}


@pytest.mark.parametrize("data", DATASETS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.theirs} beside {case.ours}")
def test_answers_are_alike(client, case, data):
    (found,) = agreement.measure(case, client, DATASETS[data])
    if found is None:
        pytest.skip("the project's test data are not beside the project")
    assert found.relative <= case.bound, f"off by {found}, of which {case.bound} is allowed"


def masks():
    some = np.zeros((57, 83), bool)
    some[5:20, 7:30] = some[30:33] = True
    return {"some": some, "empty": np.zeros((5, 7), bool), "full": np.ones((5, 7), bool), "column": np.ones((9, 1), bool)}


@pytest.mark.parametrize("mask", masks().values(), ids=masks())
@pytest.mark.parametrize("case", PEERS["pycocotools"], ids=lambda case: case.theirs)
def test_masks_of_any_kind_are_alike(client, case, mask):
    assert agreement.difference(case.answers(client, mask)).absolute == 0


def test_the_page_says_so():
    page = (ROOT / "docs" / "agreement.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) == len(CASES)
    for case, (*cells, noise, real, bound, why) in zip(CASES, rows):
        assert cells == [f"`{case.theirs}`", f"`{case.ours}`"] and why == case.why and float(bound) == case.bound
        assert all(figure == "bit for bit" or float(figure.split(", ")[1]) <= case.bound for figure in (noise, real)), cells
