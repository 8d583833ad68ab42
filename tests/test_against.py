"""`--against base`: run without patches, then with them, and compare."""

from __future__ import annotations

import io
from argparse import Namespace
from pathlib import Path
from typing import IO

import pytest

from conformance.cli import main, run_against
from conformance.cli import run as run_command
from conformance.report.export.ktap_stream import KtapRuns
from conformance.results.outcome import Outcome
from conformance.results.results_json import NAME, write_results
from conformance.results.run import RunRecord
from conformance.session.target.target import kernel_id
from kernels.errors import UserMistake
from tests.conftest import Uevt
from tests.report.export.ktap_reader import read_ktap
from tests.report.samples import case, head, run

ROOT = Path(__file__).parents[1]
DIFF = ROOT / "fixtures" / "patches" / "git.diff"
GOOD, BAD = run(case("a.b")), run(case("a.b", Outcome.FAIL))
OTHER = run(case("a.b", Outcome.FAIL), case("a.c", Outcome.CRASH))
UNCLEAN = head(suite="0.1.0-dirty")
REWRITTEN = (
    run(case("a.b", digest="aa", course="01"), head=UNCLEAN),
    run(case("a.b", Outcome.FAIL, digest="bb", course="02"), head=UNCLEAN),
)
CUT_OFF = run(case("a.b", Outcome.FAIL), selected=2)


class FakeSession:
    """Writes prepared results and records its arguments."""

    def __init__(self, *records: RunRecord | None, codes: tuple[int, ...] = (0, 0)) -> None:
        self._records = list(records)
        self._codes = list(codes)
        self.calls: list[tuple[list[str], str | None, str]] = []

    def __call__(
        self,
        options: Namespace,
        kernel: str | None,
        out: str,
        /,
        stdout: IO[str] | None = None,
        runs: KtapRuns | None = None,
        stderr: IO[str] | None = None,
    ) -> int:
        self.calls.append((options.patch, kernel, out))
        record = self._records.pop(0)
        if record is not None:
            Path(out).mkdir(parents=True, exist_ok=True)
            write_results(record, Path(out) / NAME)
            if runs is not None:
                runs.run(str(kernel), ["ok 1 uevt.run"])
        elif stdout is not None:
            stdout.write("uevt: disk full\n")
        return self._codes.pop(0)


def options(tmp_path: Path, **others: object) -> Namespace:
    plain = {"kernel": ["6.12"], "patch": [str(DIFF)], "config": [], "flavour": None}
    plain |= {"image": None, "modules": None, "tree": None, "ref": None, "ktap": None}
    plain |= {"module": [], "append": [], "abi": None}
    more = {"out": str(tmp_path / "out"), "exit_style": "default"}
    return Namespace(**{**plain, **more, **others})


def test_both_are_run_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = FakeSession(GOOD, BAD, codes=(0, 1))
    codes = run_against.judge(options(tmp_path), "6.12", session, tmp_path / "results")
    assert session.calls == [
        ([], "6.12", str(tmp_path / "out/6.12")),
        ([str(DIFF)], "6.12", str(tmp_path / "out/6.12+git")),
    ]
    assert codes == [1, 1]
    words = capsys.readouterr().out.split()
    assert " ".join(words).endswith(" REGRESSION: 1 newly deviating (contract), 0 as before")


@pytest.mark.parametrize(
    ("base", "new", "code", "expected"),
    [
        # Nothing got worse: the failure is not that of the patch.
        (BAD, BAD, 1, [0]),
        # Of what follows the base says nothing.
        (BAD, OTHER, 1, [1]),
        (BAD, CUT_OFF, 1, [1]),
        (*REWRITTEN, 1, [1]),
        (GOOD, GOOD, 0, [0]),
        (BAD, GOOD, 0, [0]),
        # A regression counts even if the run has no verdict.
        (GOOD, BAD, 3, [3, 1]),
    ],
)
def test_exit_codes(
    tmp_path: Path, base: RunRecord, new: RunRecord, code: int, expected: list[int]
) -> None:
    session = FakeSession(base, new, codes=(0, code))
    assert run_against.judge(options(tmp_path), "6.12", session, tmp_path) == expected


@pytest.mark.parametrize(
    ("earlier", "again"),
    [
        (run(case("a.b")), False),
        (run(case("a.b"), head=head(asked=("-k=a",))), True),
        (run(case("a.b"), head=head(suite_sha256="ab")), True),
        (run(case("a.b"), selected=2), True),
        (run(case("a.b", Outcome.ERROR)), True),
        (None, True),
    ],
    ids=["same", "other-cases", "edited-suite", "cut-off", "error", "damaged"],
)
def test_a_base_that_was_judged_before_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: RunRecord | None, again: bool
) -> None:
    monkeypatch.setattr(run_against, "_head", lambda _: head())
    kept = tmp_path / "6.12" / "20261101T000000Z"
    kept.mkdir(parents=True)
    if earlier is None:
        (kept / NAME).write_text("{")
    else:
        write_results(earlier, kept / NAME)
    session = FakeSession(*[GOOD] * again, BAD, codes=(*[0] * again, 1))
    assert run_against.judge(options(tmp_path, out=None), "6.12", session, tmp_path)[-1] == 1
    assert [patches for patches, _, _ in session.calls] == [*[[]] * again, [str(DIFF)]]


def test_base_without_results_ends_the_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = FakeSession(None, codes=(3,))
    assert run_against.judge(options(tmp_path), "6.12", session, tmp_path) == [3]
    assert capsys.readouterr().out == "uevt: disk full\n"


def test_earlier_results_are_not_those_of_a_refused_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_against.judge(options(tmp_path), "6.12", FakeSession(GOOD, BAD, codes=(0, 1)), tmp_path)
    capsys.readouterr()
    refused = FakeSession(None, codes=(2,))
    assert run_against.judge(options(tmp_path), "6.12", refused, tmp_path) == [2]
    assert len(refused.calls) == 1
    # The second session refuses to run.
    refused = FakeSession(GOOD, None, codes=(0, 2))
    assert run_against.judge(options(tmp_path), "6.12", refused, tmp_path) == [2]
    assert "uevt: 6.12" not in capsys.readouterr().out
    # With --force new results replace the earlier ones.
    again = FakeSession(GOOD, GOOD)
    assert run_against.judge(options(tmp_path), "6.12", again, tmp_path) == [0]
    assert "no difference" in capsys.readouterr().out


def test_ktap_reports_the_patched_kernel(tmp_path: Path) -> None:
    stream = io.StringIO()
    runs = KtapRuns(stream, 2)
    asked = options(tmp_path, ktap="run.ktap")
    run_against.judge(asked, "6.12", FakeSession(GOOD, GOOD), tmp_path, runs)
    run_against.judge(asked, "6.1", FakeSession(None, codes=(3,)), tmp_path, runs)
    first, second = read_ktap(
        stream.getvalue().replace("  ok", "  KTAP version 1\n  1..1\n  ok")
    ).subtests
    assert (first.name, first.ok) == ("6.12", True)
    assert (second.name, second.ok, second.detail) == ("6.1", False, "it did not begin")


def test_interrupted_run_is_not_compared(tmp_path: Path) -> None:
    session = FakeSession(GOOD, BAD, codes=(0, 130))
    assert run_against.judge(options(tmp_path), "6.12", session, tmp_path) == [130]
    session = FakeSession(GOOD, codes=(130,))
    assert run_against.judge(options(tmp_path, out=None), "6.12", session, tmp_path) == [130]


def test_without_out_both_runs_have_a_directory_and_a_latest_link(tmp_path: Path) -> None:
    session = FakeSession(GOOD, GOOD)
    run_against.judge(options(tmp_path, out=None), "6.12", session, tmp_path / "results")
    for name in ("6.12", "6.12+git"):
        assert (tmp_path / "results" / name / "latest" / NAME).is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kernel", "6.12"], "add --kernel 6.12 --patch FILE"),
        (["--kernel", "model", "--patch", DIFF], "--against base is for a kernel with --patch"),
        (
            ["--image", ROOT, "--patch", DIFF],
            "--patch is for kernels that are built, and an image is not",
        ),
    ],
)
def test_comparison_without_patches_is_refused(
    uevt: Uevt, words: list[object], message: str
) -> None:
    assert message in uevt("run", *words, "--against", "base", code=2).err


def test_several_kernels_have_directories_by_their_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outs: list[str | None] = []

    def child(_: Namespace, kernel: str, out: str | None, *, runs: object) -> int:
        outs.append(out)
        return 0

    monkeypatch.setattr(run_command, "session", child)
    argv = ["run", "--kernel", "6.12", "--kernel", "6.1", "--patch", str(DIFF)]
    assert main.main([*argv, "--out", str(tmp_path)]) == 0
    assert outs == [str(tmp_path / "6.12+git"), str(tmp_path / "6.1+git")]
    # Every kernel is checked before the first one is judged.
    assert main.main([*argv, "--kernel", "6.99"]) == 2
    assert len(outs) == 2


def test_module_is_in_the_kernel_id_before_it_is_built(tmp_path: Path) -> None:
    """Results go to a directory named by the kernel id."""
    (tmp_path / "mine").mkdir()
    more = {"module": [str(tmp_path / "mine"), "/x/fast-path.ko"], "patch": [], "flavour": "debug"}
    assert kernel_id(options(tmp_path, kernel="6.12", **more)) == "6.12+mine+fast-path~debug"


def test_model_takes_no_arguments(tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match="the model takes no kernel arguments"):
        kernel_id(options(tmp_path, kernel="model", patch=[], append=["quiet"]))
