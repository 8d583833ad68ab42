"""Selection of cases, and the number of those that apply."""

from __future__ import annotations

from pathlib import Path

from conformance.cases.variants import all_variants, variants_of
from conformance.session.selection import _ids_of
from tests.commands import results, uevt


def test_ids_of_both_tiers_are_those_of_the_variants() -> None:
    functions = {each.function: each.case for each in all_variants()}
    for function, case in functions.items():
        assert _ids_of(case, function) == [each.id for each in variants_of(function)]


def test_a_quick_run_counts_what_matches_in_the_full_tier(tmp_path: Path) -> None:
    uevt("run", "--kernel", "model", "-k", "bpf.exit", "--out", tmp_path / "out")
    found = results(tmp_path / "out")["summary"]
    matching = [each.id for each in all_variants() if "bpf.exit" in each.id]
    assert (found["selected"], found["functions"]["variants"]) == (1, len(matching))


def test_an_unknown_id_is_refused_beside_an_expression(tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out")
    ids = ("--only", "status.file_mode", "--only", "write.absent")
    refused = uevt("run", "--kernel", "model", "-k", "file_mode", *ids, *out, code=2)
    assert "--only: tier full has no case 'write.absent'" in refused.stderr
    known = ("--only", "status.file_mode", "--only", "status.read_write_only")
    uevt("run", "--kernel", "model", "-k", "file_mode", *known, *out)
    assert results(tmp_path / "out")["summary"]["selected"] == 1
