"""Selection of cases, and the number of those that apply."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.cases.variants import all_variants, variants_of
from conformance.session.selection import _ids_of
from tests.test_end_to_end import uevt


def test_ids_of_both_tiers_are_those_of_the_variants() -> None:
    functions = {each.function: each.case for each in all_variants()}
    for function, case in functions.items():
        assert _ids_of(case, function) == [each.id for each in variants_of(function)]


def test_a_quick_run_counts_what_matches_in_the_full_tier(tmp_path: Path) -> None:
    uevt("run", "--kernel", "model", "-k", "bpf.exit", "--out", str(tmp_path / "out"))
    found = json.loads((tmp_path / "out/results.json").read_text())["summary"]
    matching = [each.id for each in all_variants() if "bpf.exit" in each.id]
    assert (found["selected"], found["functions"]["variants"]) == (1, len(matching))
