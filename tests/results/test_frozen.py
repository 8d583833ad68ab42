"""Frozen lists of cases: files, and the share of one that a run judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.results.errors import ReportError
from conformance.results.frozen import PUBLISHED, FrozenList, located
from conformance.results.outcome import Outcome
from conformance.results.run import RunRecord
from tests.report.samples import case, head, run

A, B, C = "a" * 12, "b" * 12, "c" * 12
LIST = FrozenList("0.1.0", {"write.a": frozenset({A, B}), "write.b": frozenset({B})})


def test_a_list_has_the_programs_of_all_published_runs() -> None:
    published = [{"write.a": A, "write.gone": A, "write.b": ""}, {"write.a": B}]
    found = FrozenList.of("0.1.0", ["write.a", "write.b", "write.new"], published)
    assert found.text == (
        f"# uevt 0.1.0: 2 cases, each with the digests of its programs\nwrite.a {A} {B}\nwrite.b\n"
    )


def test_a_list_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text(LIST.text)
    assert FrozenList.read(file) == LIST


HEAD = "# uevt 0.1.0: 1 cases, each with the digests of its programs\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is no frozen list"),
        (b"\xff\xfe", "is no frozen list"),
        (b"write.a\n", "line 1 is not of one"),
        (f"{HEAD}write.a xyz\n".encode(), "line 2 is not an id with digests"),
        (f"{HEAD}Write\n".encode(), "line 2 is not an id with digests"),
        (f"{HEAD}write.a\nwrite.a\n".encode(), "line 3 is not an id with digests, or its case is"),
        (HEAD.encode(), "has 0 of the 1 cases that line 1 announces"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes(content)
    with pytest.raises(ReportError, match=says) as error:
        FrozenList.read(file)
    assert "uevt cases --frozen" in error.value.hint


def test_the_share_counts_what_was_judged() -> None:
    share = LIST.share(
        [
            case("write.a", digest=B + "0" * 52),
            case("write.b", Outcome.ERROR, digest=B),
            # Beside the list: a result about a case, and a new case.
            case("write.a.leftover", Outcome.FAIL),
            case("write.new", digest=C),
        ]
    )
    assert (share.list, share.listed, share.judged, share.other_programs) == ("0.1.0", 2, 1, ())


@pytest.mark.parametrize(
    ("outcome", "other"), [(Outcome.PASS, ("write.b",)), (Outcome.FAIL, ()), (Outcome.SKIP, ())]
)
def test_a_case_that_passed_with_another_program_is_named(
    outcome: Outcome, other: tuple[str, ...]
) -> None:
    # A case that deviates ends before its program does.
    assert LIST.share([case("write.b", outcome, digest=C)]).other_programs == other


def test_the_share_is_in_results_and_verdict() -> None:
    cases = (case("write.a", digest=A),)
    record = run(*cases, frozen=LIST.share(cases), head=head(asked=("--tier=full",)))
    assert record.share == "list 0.1.0: 1 of 2"
    assert RunRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_a_version_names_its_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert located("0.1.0") == str(PUBLISHED / "0.1.0.txt")
    assert located("no-such") == "no-such"
    assert located("../frozen/0.1.0") == "../frozen/0.1.0"
    (tmp_path / "0.1.0").touch()
    assert located("0.1.0") == "0.1.0"


def test_a_device_is_no_list() -> None:
    with pytest.raises(ReportError, match="not a regular file"):
        FrozenList.read(Path("/dev/null"))
