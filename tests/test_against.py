"""--against base: the same request without patches, then with them, and what that changes."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import IO

import pytest

from conformance import against, cli
from conformance.outcome import Outcome
from conformance.report.record import RunRecord
from conformance.report.results import NAME, write_results
from kernels.errors import UserMistake
from tests.report.samples import case, run

ROOT = Path(__file__).parents[1]
DIFF = ROOT / "fixtures" / "patches" / "git.diff"
GOOD, BAD = run(case("a.b")), run(case("a.b", Outcome.FAIL))


class FakeSession:
    """Writes prepared results, and notes what it was asked."""

    def __init__(self, *records: RunRecord | None, codes: tuple[int, ...] = (0, 0)) -> None:
        self._records = list(records)
        self._codes = list(codes)
        self.calls: list[tuple[list[str], str | None, str]] = []

    def __call__(
        self, options: Namespace, kernel: str | None, out: str, said: IO[str] | None
    ) -> int:
        self.calls.append((options.patch, kernel, out))
        record = self._records.pop(0)
        if record is not None:
            Path(out).mkdir(parents=True)
            write_results(record, Path(out) / NAME)
        elif said is not None:
            said.write("uevt: disk full\n")
        return self._codes.pop(0)


def options(tmp_path: Path, **others: object) -> Namespace:
    plain = {"kernel": ["6.12"], "patch": [str(DIFF)], "config": [], "flavour": None}
    plain |= {"tree": None, "ref": None, "ktap": None}
    more = {"out": str(tmp_path / "out"), "exit_style": "default"}
    return Namespace(**{**plain, **more, **others})


def test_both_are_run_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = FakeSession(GOOD, BAD, codes=(0, 1))
    codes = against.judge(options(tmp_path), "6.12", session, tmp_path / "results")
    assert session.calls == [
        ([], "6.12", str(tmp_path / "out/6.12")),
        ([str(DIFF)], "6.12", str(tmp_path / "out/6.12+git")),
    ]
    assert codes == [1, 1]
    assert capsys.readouterr().out.endswith(" 1 newly failing, 0 as before\n")


@pytest.mark.parametrize(
    ("base", "new", "code", "expected"),
    [
        # Wrong in both: the exit code is that of the patched run.
        (BAD, BAD, 1, [1]),
        (GOOD, GOOD, 0, [0]),
        (BAD, GOOD, 0, [0]),
        # Worse although the run as a whole gave no verdict.
        (GOOD, BAD, 3, [3, 1]),
    ],
)
def test_exit_codes(
    tmp_path: Path, base: RunRecord, new: RunRecord, code: int, expected: list[int]
) -> None:
    session = FakeSession(base, new, codes=(0, code))
    assert against.judge(options(tmp_path), "6.12", session, tmp_path) == expected


def test_a_base_that_gives_no_results_ends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = FakeSession(None, codes=(3,))
    assert against.judge(options(tmp_path), "6.12", session, tmp_path) == [3]
    assert capsys.readouterr().out == "uevt: disk full\n"


def test_an_interrupted_run_is_not_compared(tmp_path: Path) -> None:
    session = FakeSession(GOOD, BAD, codes=(0, 130))
    assert against.judge(options(tmp_path), "6.12", session, tmp_path) == [130]
    session = FakeSession(GOOD, codes=(130,))
    assert against.judge(options(tmp_path, out=None), "6.12", session, tmp_path) == [130]


def test_without_out_both_have_a_directory_and_latest(tmp_path: Path) -> None:
    session = FakeSession(GOOD, GOOD)
    against.judge(options(tmp_path, out=None), "6.12", session, tmp_path / "results")
    for name in ("6.12", "6.12+git"):
        assert (tmp_path / "results" / name / "latest" / NAME).is_file()


@pytest.mark.parametrize(("kernel", "patch"), [("6.12", []), ("model", [str(DIFF)])])
def test_there_must_be_something_to_compare(tmp_path: Path, kernel: str, patch: list[str]) -> None:
    with pytest.raises(UserMistake, match="--against base is for a kernel with --patch"):
        against.judge(options(tmp_path, patch=patch), kernel, FakeSession(), tmp_path)


def test_the_command_says_so_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--kernel", "6.12", "--against", "base"]) == 2
    assert "add --kernel 6.12 --patch FILE" in capsys.readouterr().err


def test_several_kernels_have_directories_by_their_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outs: list[str | None] = []

    def child(_: Namespace, kernel: str, out: str | None, *, runs: object) -> int:
        outs.append(out)
        return 0

    monkeypatch.setattr(cli, "session", child)
    argv = ["run", "--kernel", "6.12", "--kernel", "6.1", "--patch", str(DIFF)]
    assert cli.main([*argv, "--out", str(tmp_path)]) == 0
    assert outs == [str(tmp_path / "6.12+git"), str(tmp_path / "6.1+git")]
    # The last name is looked at before the first kernel is judged.
    assert cli.main([*argv, "--kernel", "6.99"]) == 2
    assert len(outs) == 2
