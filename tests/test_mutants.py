"""Wrong kernels that an earlier suite missed: each has a case that detects it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.results.outcome import OUTCOME_OF
from kernels.patches import series
from kernels.store.built_kernel import BuiltKernel
from tests.cases.variants import all_variants
from tests.commands import cases, uevt

MUTANTS = sorted((Path(__file__).resolve().parent.parent / "fixtures" / "mutants").glob("*.patch"))


def detected_by(patch: Path) -> str:
    found = re.search(r"^Detected by: (\S+)$", patch.read_text(), re.MULTILINE)
    assert found, f"{patch.name}: name the case that detects it: Detected by: surface.name"
    return found[1]


@pytest.mark.parametrize("patch", MUTANTS, ids=lambda patch: patch.stem)
def test_table_names_existing_cases(patch: Path) -> None:
    """The table names existing cases and valid patches."""
    assert len(series.read(patch).patches) == 1
    assert detected_by(patch) in {variant.id for variant in all_variants()}


def test_all_mutants_are_detected(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """On a kernel with all mistakes every named case detects its own."""
    together = tmp_path / "mutants.patch"
    together.write_text("\n".join(patch.read_text() for patch in MUTANTS))
    names = {detected_by(patch) for patch in MUTANTS}
    levels = {each.id: each.case.level for each in all_variants() if each.id in names}
    given = ("--kernel", "6.12", "--patch", together, "--tier", "full", "--strict")
    wanted = ("-k", " or ".join(sorted(names)))
    uevt("run", *given, *wanted, "--out", tmp_path / "out", code=1)
    found = cases(tmp_path / "out")
    assert {name: found[name]["outcome"] for name in names} == {
        # What the kernel itself complains about is a FAIL at any level.
        case: "FAIL" if found[case]["reports"] else OUTCOME_OF[level].value
        for case, level in levels.items()
    }
