"""Coverage by the counters of real objects, and errors without them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.session.target.gcov import CountedObject, NoCoverage, coverage

SOURCE = """\
int main(int count, char **words)
{
	if (count > 2)
		return 2;
	if (count > 1)
		return 0;
	return 0;
}
"""


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The notes of a program compiled with counters."""
    tree = tmp_path / "tree"
    (tree / "kernel").mkdir(parents=True)
    (tree / "kernel" / "small.c").write_text(SOURCE)
    objects = tmp_path / "objects"
    (objects / "kernel").mkdir(parents=True)
    compiled = ["gcc", "--coverage", "-c", "-o", "kernel/small.o", str(tree / "kernel/small.c")]
    subprocess.run(compiled, cwd=objects, check=True)
    linked = ["gcc", "--coverage", "-o", "small", "kernel/small.o"]
    subprocess.run(linked, cwd=objects, check=True)
    return objects


def ran(kept: Path, counted: CountedObject, name: str, *words: str) -> Path:
    """The counters of one run."""
    subprocess.run([kept / "small", *words], check=False)
    counters = counted.notes.with_suffix(".gcda")
    return counters.rename(kept / name)


def test_coverage_of_guests_is_merged(kept: Path) -> None:
    counted = CountedObject.of(kept / "kernel" / "small.gcno", kept)
    assert counted.source == "kernel/small.c"
    assert counted.counters == f"/sys/kernel/debug/gcov{kept}/kernel/small.gcda"
    none = ran(kept, counted, "none.gcda")
    one = ran(kept, counted, "one.gcda", "1")
    assert coverage(counted, [none]).missed == [4, 6]
    assert coverage(counted, [one]).missed == [4, 7]
    both = coverage(counted, [none, one])
    assert (both.missed, len(both.lines), both.lines[1]) == ([4], 6, 2)
    assert (len(both.branches), both.covered.branches_percent) == (4, 75)
    assert str(both) == "kernel/small.c: 83.3 % of 6 lines, 75.0 % of 4 branches"
    assert both.to_json()["missed_lines"] == [4]


def test_object_without_counters_is_all_missed(kept: Path) -> None:
    counted = CountedObject.of(kept / "kernel" / "small.gcno", kept)
    assert coverage(counted, []).covered.lines_percent == 0
    assert coverage(replace(counted, source="kernel/other.c"), []).lines == {}


def test_invalid_notes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "small.gcno").write_text("no notes")
    with pytest.raises(NoCoverage, match=r"gcov cannot read .*small\.gcno") as caught:
        CountedObject.of(tmp_path / "small.gcno", tmp_path)
    assert "install the gcov of the compiler" in caught.value.hint
