"""`--resume`: a resumed run ends like an uninterrupted one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.cases.surfaces import listed
from conformance.results.journal import JournalWriter
from conformance.results.replay import read_journal
from tests.enclosure import Runs, comparable
from tests.processes import wait_for
from tests.results.test_schema import WRITTEN

# One process, so that the lines of the journal have one order.
FEW = ("--kernel=model", "-k", "status.", "--guests=1")
PATIENCE = 60.0


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run, to be copied."""
    directory = tmp_path_factory.mktemp("finished")
    out = directory / "out"
    assert Runs(directory, "model").run(*FEW, f"--out={out}") == (0, "")
    return out


@pytest.fixture
def place(tmp_path: Path) -> Runs:
    """Private directories."""
    return Runs(tmp_path, "model")


@pytest.fixture
def out(place: Runs, finished: Path) -> Path:
    """A complete run."""
    return shutil.copytree(finished, place.directory / "out")


def cut(out: Path, lines: int) -> None:
    """Truncate the journal of a run, as if it was killed."""
    path = out / "journal.jsonl"
    kept = path.read_bytes().splitlines(keepends=True)[:lines]
    path.write_bytes(b"".join(kept) + b'{"event": "ca')
    for name in ("results.json", "junit.xml", "results.ktap"):
        (out / name).unlink()


def test_resumed_run_equals_an_uninterrupted_one(place: Runs, out: Path) -> None:
    """Killed between two cases, and after the last one."""
    undisturbed = comparable(out)
    lines = len((out / "journal.jsonl").read_bytes().splitlines())
    for kept in (8, lines - 1):
        cut(out, kept)
        assert place.run(f"--resume={out}")[0] == 0
        assert comparable(out) == undisturbed
        for name in ("junit.xml", "results.ktap"):
            assert "status.totals.one_idle" in (out / name).read_text()
        assert place.left() == []
    assert json.loads((out / "results.json").read_text())["host"]["resumed"] == "2 times"


def test_order_of_results_is_not_that_of_ending(place: Runs) -> None:
    out = place.directory / "out"
    few = ("--kernel=model", "-k", "header. or status.w or delete.busy", "--shuffle=7")
    assert place.run(*few, f"--out={out}") == (0, "")
    results = json.loads((out / "results.json").read_text())
    WRITTEN.validate(results)
    ids = [case["id"] for case in results["cases"]]
    assert ids == sorted(ids, key=listed)
    assert list(read_journal(out / "journal.jsonl").results) != ids
    entries = ElementTree.parse(out / "junit.xml").findall(".//testcase")
    assert [each.get("name") for each in entries] == [*ids, "uevt.run"]
    found = re.findall(r"(?m)^ *ok \d+ (\S+\.\S+)", (out / "results.ktap").read_text())
    assert found == [*ids, "uevt.run"]


def test_killed_run_leaves_only_its_results(place: Runs) -> None:
    out = place.directory / "out"
    what = ("--kernel=model", "-k", "write")
    with place.start(*what, f"--out={out}") as process:
        wait_for(lambda: _count(out) > 3, "result of a case", PATIENCE)
        process.kill()
        _, said = process.communicate(timeout=PATIENCE)
    assert said == b""
    before = _count(out)
    assert place.left() == []
    assert place.run(f"--resume={out}") == (0, "")
    assert before <= _count(out) == read_journal(out / "journal.jsonl").selected
    assert place.left() == []


def test_complete_run_is_not_repeated(place: Runs, out: Path) -> None:
    expected = comparable(out)
    journal = (out / "journal.jsonl").read_bytes()
    (out / "results.json").unlink()
    message = f"uevt: {out} is complete; its reports are written again\n"
    assert place.run(f"--resume={out}") == (0, message)
    assert comparable(out) == expected
    assert (out / "journal.jsonl").read_bytes() == journal


def test_resuming_by_the_link_latest_keeps_it(place: Runs, out: Path) -> None:
    latest = place.directory / "latest"
    latest.symlink_to(out.name)
    code, said = place.run(f"--resume={latest}")
    assert (code, said) == (0, f"uevt: {out} is complete; its reports are written again\n")


def test_case_in_which_a_run_died_twice_is_abandoned(place: Runs, out: Path) -> None:
    undisturbed = comparable(out)["cases"]
    path = out / "journal.jsonl"
    head = read_journal(path).head
    assert head is not None
    path.unlink()
    for _ in range(2):
        with JournalWriter(path) as journal:
            journal.begin(head)
            journal.plan(len(undisturbed))
            journal.running("status.file_mode", "quick")
    assert place.run(f"--resume={out}")[0] == 3
    cases = comparable(out)["cases"]
    abandoned_cases = cases["status.file_mode"]
    assert (abandoned_cases["outcome"], abandoned_cases["blame"]) == ("ERROR", "harness")
    assert abandoned_cases["reason"].startswith("2 times the process that ran it died")
    others = cases.keys() - {"status.file_mode"}
    assert {name: cases[name] for name in others} == {name: undisturbed[name] for name in others}


def test_second_process_that_resumes_a_run_is_refused(place: Runs, out: Path) -> None:
    cut(out, 4)
    before = (out / "journal.jsonl").read_bytes()
    ktap = place.directory / "ktap"
    ktap.write_text("of the first process")
    several = ("--kernel=6.12", f"--resume={out.parent}")
    (out.parent / "model").symlink_to(out)
    with JournalWriter(out / "journal.jsonl"):
        for options in ([f"--resume={out}"], [f"--out={out}", "--force"], several):
            code, said = place.run(*FEW, *options, f"--ktap={ktap}")
            assert code == 2
            assert "is being written by another run; wait for that run to end" in said
    assert ktap.read_text() == "of the first process"
    assert (out / "journal.jsonl").read_bytes() == before


def test_resuming_as_another_run_is_refused(place: Runs, out: Path) -> None:
    cut(out, 4)
    before = (out / "journal.jsonl").read_bytes()
    assert place.run(f"--resume={out}", "--tier=full", "--abi=6.8") == (
        2,
        f"uevt: {out}: would resume as another run: kernel profile was 6.12.117 and is 6.8; "
        "--tier was quick and is full; restore that, or start a new run: another --out, or --out "
        "with --force\n",
    )
    assert (out / "journal.jsonl").read_bytes() == before


def test_damaged_journal_is_named_and_kept(place: Runs, out: Path) -> None:
    path = out / "journal.jsonl"
    damaged = path.read_bytes().replace(b"PASS", b"FAIL", 1)
    path.write_bytes(damaged)
    message = f"uevt: {path}: line 4: was changed or moved; restore the file, or run again\n"
    assert place.run(f"--resume={out}") == (2, message)
    assert path.read_bytes() == damaged


def test_several_kernels_are_resumed_separately(
    place: Runs, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that was not begun begins; one that cannot be judged is reported."""
    cut(out, 4)
    out.rename(place.directory / "model")
    monkeypatch.setenv("UEVT_MIRROR", f"file://{place.directory}")
    code, said = place.run("--kernel=model", "--kernel=5.19", f"--resume={place.directory}")
    assert code == 3
    assert "5.19" in said
    assert comparable(place.directory / "model")["summary"]["self_check"] == "ok"


def _count(out: Path) -> int:
    path = out / "journal.jsonl"
    return read_journal(path).count if path.exists() else 0
