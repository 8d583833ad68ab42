"""results.json: round trip, and atomic replacement."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from conformance.results.errors import ReportError
from conformance.results.outcome import Outcome, RunVerdict
from conformance.results.results_json import read_results, write_results
from conformance.results.run import RunRecord
from conformance.results.stored_outcomes import read_outcomes
from tests.report.samples import UNHURRIED, case, contradicted, head, mixed, run, runs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Path of the results."""
    return tmp_path / "results.json"


@UNHURRIED
@given(runs())
def test_a_run_survives_json(record: RunRecord) -> None:
    document = record.to_json()
    assert RunRecord.from_json(json.loads(json.dumps(document))).to_json() == document


def test_the_file_holds_schema_1(path: Path) -> None:
    write_results(mixed(), path)
    document = json.loads(path.read_text())
    assert document["schema"] == 1
    assert document["host"]["accel"] == "tcg"
    assert [each["id"] for each in document["cases"]][:2] == [
        "registration.empty_name",
        "registration.size_short",
    ]
    summary = document["summary"]
    assert summary["verdict"] == "FAIL"
    assert (summary["PASS"], summary["FAIL"], summary["XFAIL"], summary["ERROR"]) == (2, 1, 1, 1)
    assert (summary["CHANGED"], summary["NOTE"], summary["FIXED"]) == (1, 1, 1)
    assert document["fail_on"] == "contract"
    levels = {each["id"]: each["level"] for each in document["cases"]}
    assert levels["grammar.order"] == "behaviour"
    assert read_results(path) == mixed()


def summary_of(record: RunRecord, path: Path) -> Any:
    """The summary in the document of a run, which is read back."""
    write_results(record, path)
    assert read_results(path) == record
    return json.loads(path.read_text())["summary"]


def test_contradicted_switches_are_in_the_summary(path: Path) -> None:
    summary = summary_of(contradicted(), path)
    assert summary["verdict"] == "FAIL"
    found = {each["switch"]: each["measured"] for each in summary["contradictions"]}
    assert found == {"ebadf_when_disabled": False, "persist": True}


def test_a_self_check_has_no_verdict_and_no_counts(path: Path) -> None:
    summary = summary_of(run(case("write.a"), head=head(self_check=True)), path)
    assert summary["self_check"] == "ok"
    assert not {"verdict", *Outcome} & set(summary)


def test_results_are_replaced_atomically(path: Path) -> None:
    short, long = run(case("write.a")), run(*(case(f"write.n{n}") for n in range(300)))
    write_results(short, path)
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            write_results(long, path)
            write_results(short, path)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        seen = {len(read_results(path).cases) for _ in range(100)}
    finally:
        stop.set()
        writer.join()
    assert seen <= {1, 300}


def test_a_full_disk_leaves_the_old_document(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_results(run(case("write.a")), path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_results(mixed(), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_mode_of_the_file_follows_the_umask(path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_results(mixed(), path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"schema": 1', '"schema": 3'), "has schema 3, and this uevt reads schema 1"),
        (('"accel": "tcg"', '"qemu": "7.2"'), "run: host.accel is missing"),
        (('"accel": "tcg"', '"accel": 7'), r"run.host\[...\]: expected `str`, got `int`"),
        (('"verdict": "FAIL"', '"verdict": "PASS"'), "has verdict PASS, but the cases give FAIL"),
        (('"tier": "quick"', '"tier": 0'), r"run.cases\[0\].tier: expected `str`, got `int`"),
        (('"selected": 11', '"selected": -1'), "run.summary.selected: expected `int` >= 0"),
        (
            ('"duration_s": ', '"duration_s": 1e999, "x": '),
            "is not JSON: 1e999 is no finite number",
        ),
        (('"duration_s": ', '"duration_s": NaN, "x": '), "is not JSON: NaN is no finite number"),
        (('"selected": 11', '"selected": "11"'), "run.summary.selected: expected `int`, got `str`"),
        (("{", "["), "is not JSON: "),
    ],
)
def test_an_invalid_document_is_refused_with_its_place(
    path: Path, change: tuple[str, str], message: str
) -> None:
    write_results(mixed(), path)
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    with pytest.raises(ReportError, match=f"results.json: .*{message}"):
        read_results(path)


@pytest.mark.parametrize("change", [{"verdict": "PASS"}, {"verdict": None}, {"selected": 100}])
@pytest.mark.parametrize("read", [read_results, read_outcomes])
def test_no_reader_takes_a_verdict_that_does_not_follow_from_the_cases(
    path: Path, change: dict[str, object], read: Callable[[Path], object]
) -> None:
    passed = replace(mixed(), cases=mixed().cases[:1], selected=1)
    assert passed.verdict is RunVerdict.PASS
    document = (passed if "selected" in change else mixed()).to_json()
    document["summary"] |= change
    path.write_text(json.dumps(document))
    with pytest.raises(ReportError, match="has verdict"):
        read(path)


@pytest.mark.parametrize(
    ("found", "hint"),
    [(0, "run again, or read it with the uevt that wrote it"), (2, "update uevt"), ("1", "run")],
)
@pytest.mark.parametrize("read", [read_results, read_outcomes])
def test_a_document_of_another_schema_is_refused_with_a_hint(
    path: Path, found: object, hint: str, read: Callable[[Path], object]
) -> None:
    path.write_text(json.dumps({**mixed().to_json(), "schema": found}))
    with pytest.raises(ReportError, match=f"has schema {found!r}, and") as error:
        read(path)
    assert error.value.hint.startswith(hint)
