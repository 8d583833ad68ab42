"""`uevt bisect` over small histories whose kernels only say what they would show."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import pytest

from conformance import bisect_command, bisect_walk
from conformance.bisect_judge import Chosen, NoVerdict, answer_of
from conformance.cli import main
from conformance.outcome import CaseResult, Outcome, SkipReason
from conformance.report.run.record import RunRecord
from conformance.report.run.results import NAME, write_results
from kernels.bisection import Answer
from kernels.errors import UserMistake
from kernels.store import Store
from tests.kernels.user_trees import FILES, everything, git
from tests.report.samples import case, failure, run

CASE = "multi_format.name.plain"
FUNCTION = "multi_format.name"
OLD_CASE = "status_page.length"


class Session:
    """In the place of a session: a commit's file `state` says what its kernel shows."""

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.options: list[Namespace] = []
        # What each state becomes when it is asked for again.
        self.later: dict[str, str] = {}

    def __call__(
        self,
        options: Namespace,
        kernel: str | None,
        out: str,
        /,
        said: IO[str] | None = None,
        runs: object = None,
        remarks: IO[str] | None = None,
    ) -> int:
        assert kernel is None
        assert remarks is not None
        state = git(Path(options.tree), "show", f"{options.ref}:state")
        state = self.later.get(state, state) if state in self.judged else state
        self.judged.append(state)
        self.options.append(options)
        if state == "broken":
            remarks.write("uevt: building it failed\n    fork.c: error\n")
            return 125
        if state == "host":
            remarks.write("uevt: QEMU is missing; install it\n")
            return 129
        if state == "stopped":
            return 130
        write_results(_record(state.partition(" ")[0]), Path(out) / NAME)
        return 0


def _record(state: str) -> RunRecord:
    beside = case("multi_format.name.plain_too", Outcome.FAIL)
    match state:
        case "none":
            return run(_result(Outcome.SKIP, reason=SkipReason.NOT_BUILT), not_built=True)
        case "skip":
            return run(_result(Outcome.SKIP, reason=SkipReason.CONTRADICTED))
        case "adapted":
            return run(_result(Outcome.FAIL, adapted=("persist",)))
        case "error":
            return run(_result(Outcome.ERROR, reason="no agent after a boot"))
        case "cut":
            return run(selected=2)
        case "missing":
            return run(beside)
        case "good":
            return run(_result(Outcome.PASS), beside)
        case "bad":
            return run(_result(Outcome.FAIL, reason="\x1b[31mit is\nwritten"))
    return run(_result(Outcome(state.upper())))


def _result(outcome: Outcome, **others: object) -> CaseResult:
    return case(CASE, outcome, evidence=failure().evidence, **others)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Session:
    """A fake session, and a store of its own."""
    fake = Session()
    monkeypatch.setattr(bisect_command, "session", fake)
    monkeypatch.setenv("UEVT_CACHE", str(tmp_path / "cache"))
    for number in (signal.SIGTERM, signal.SIGHUP):
        # The command changes them for its process, which here is that of all tests.
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        assert signal.getsignal(number) is not None
    return fake


@pytest.fixture
def history(tmp_path: Path) -> Callable[..., Path]:
    """Makes a kernel's repository with a commit for each state."""

    def make(*states: str) -> Path:
        tree = tmp_path / "linux"
        for name, text in FILES.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        git(tree, "init", "-q")
        for number, state in enumerate(states):
            state, _, release = state.partition("@")
            if release:
                major, minor = release.split(".")
                (tree / "Makefile").write_text(f"VERSION = {major}\nPATCHLEVEL = {minor}\n")
            (tree / "state").write_text(state)
            (tree / "number").write_text(f"{number}\n")
            git(tree, "add", "-A", "-f")
            git(tree, "commit", "-q", "-m", f"number {number}: \x1b[31m {state}")
        return tree

    return make


def bisect(tree: Path, *more: str, case_id: str = CASE, first: str = "") -> int:
    root = git(tree, "rev-list", "--max-parents=0", "HEAD")
    out = ("--out", str(tree.parent / "out"))
    words = ("--good", first or root, "--bad", "HEAD", "--case", case_id)
    return main(["bisect", *words, "--tree", str(tree), *out, *more])


Caught = pytest.CaptureFixture[str]


def test_the_commit_and_its_evidence(
    session: Session, history: Callable[..., Path], capsys: Caught
) -> None:
    tree = history("good", "good", "good", "bad", "bad", "bad")
    before = everything(tree)
    assert bisect(tree) == 0
    assert everything(tree) == before
    said = capsys.readouterr().out
    sha = git(tree, "rev-parse", "HEAD~2")
    assert f"the first bad commit is\n  {sha}\n    number 3:" in said
    assert "a <a@example.org>" in said
    assert f"FAIL {CASE} (blame kernel" in said
    for part in ("the model allows", "the kernel said", "the documentation says"):
        assert part in said
    assert "\x1b" not in said
    # But for paths.
    table = said.partition("FAIL")[0].splitlines()[2:]
    assert max(map(len, table)) <= 78
    last = said.splitlines()[-1]
    assert last.startswith(f"uevt: first bad commit {sha[:12]}")


def test_on_a_terminal_the_commit_is_told_while_it_is_judged(
    session: Session,
    history: Callable[..., Path],
    capsys: Caught,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bisect_walk, "is_terminal", lambda *_: True)
    assert bisect(history("good", "bad")) == 0
    first = capsys.readouterr().out.split("\n")[2]
    judging, _, judged = first.partition("\r\x1b[K")
    assert "..." in judging
    assert "good " in judged


def test_a_repository_without_a_working_tree(
    session: Session, history: Callable[..., Path], tmp_path: Path
) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(history("good", "good", "bad")), str(bare))
    assert bisect(bare) == 0


def test_what_a_run_is_asked(session: Session, history: Callable[..., Path]) -> None:
    tree = history("good", "bad", "bad")
    config = tree.parent / "a.config"
    config.write_text("CONFIG_X=y\n")
    more = ("--abi", "6.12", "--config", str(config), "--flavour", "debug", "--append", "a b")
    assert bisect(tree, *more, case_id=FUNCTION) in (0, 3)
    options = session.options[0]
    assert (options.tier, options.exit_style, options.guests) == ("full", "bisect", 1)
    assert (options.abi, options.flavour, options.append) == ("6.12", "debug", ["a b"])
    assert options.config == [str(config)]
    assert CASE in options.keyword.split(" or ")
    assert options.ref == git(tree, "rev-list", "--max-parents=0", "HEAD")


def test_only_the_cases_asked_about_count(session: Session, history: Callable[..., Path]) -> None:
    """-k finds parts of ids: what else it found fails everywhere here."""
    assert bisect(history("good", "good", "bad")) == 0


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("broken", "does not build"),
        ("none", "built without user_events"),
        ("error", "no verdict"),
        ("good@6.1", "is not for the ABI of 6.1"),
        ("good@5.10", "catalog begins with"),
    ],
)
def test_what_is_not_judged_is_skipped(
    session: Session, history: Callable[..., Path], capsys: Caught, state: str, why: str
) -> None:
    tree = history("good", state, "bad@6.13", "bad")
    assert bisect(tree) == 1
    said = capsys.readouterr().out
    assert "one of these is the first bad commit" in said
    assert re.search(rf"skipped: .*{why}", said)
    assert f"FAIL {CASE}" in said
    assert said.splitlines()[-1].startswith("uevt: one of 2 commits")


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        *((state, Answer.GOOD) for state in ("good", "pass", "xfail")),
        *((state, Answer.BAD) for state in ("bad", "fail", "crash", "timeout", "xpass")),
        *((state, Answer.SKIP) for state in ("none", "skip", "adapted")),
        *((state, None) for state in ("error", "cut", "missing")),
    ],
)
def test_what_a_run_makes_of_its_commit(state: str, answer: Answer | None) -> None:
    record = _record(state)
    results = tuple(each for each in record.cases if each.id == CASE)
    if answer is None:
        with pytest.raises(NoVerdict):
            answer_of(record, results, frozenset({CASE}))
    else:
        assert answer_of(record, results, frozenset({CASE}))[0] is answer


def test_one_case_that_fails_is_enough() -> None:
    """Whatever else was not judged; and what was not judged is no pass."""
    wanted = frozenset({"a.fails", "a.passes", "a.error"})
    results = (case("a.fails", Outcome.FAIL), case("a.passes"), case("a.error", Outcome.ERROR))
    assert answer_of(run(*results), results, wanted)[0] is Answer.BAD
    with pytest.raises(NoVerdict):
        answer_of(run(*results[1:]), results[1:], wanted - {"a.fails"})


def test_what_is_skipped_and_no_suspect_is_told(
    session: Session, history: Callable[..., Path], capsys: Caught
) -> None:
    tree = history("good", "good", "good", "broken", "good", "bad", "bad")
    assert bisect(tree) == 0
    sha = git(tree, "rev-parse", "HEAD~3")
    assert f"skipped on the way: {sha[:12]} (does not build)" in capsys.readouterr().out


def test_a_pinned_abi_judges_all_alike(session: Session, history: Callable[..., Path]) -> None:
    tree = history("good", "good@6.1", "bad@6.13", "bad")
    assert bisect(tree, "--abi", "6.12") == 0


@pytest.mark.parametrize(
    ("states", "said"),
    [(("bad", "bad"), "the good commit .* fails already"), (("good", "good"), "does not fail")],
)
def test_ends_that_do_not_differ(
    session: Session, history: Callable[..., Path], capsys: Caught, states: list[str], said: str
) -> None:
    assert bisect(history(*states)) == 1
    assert re.search(f"nothing to find: .*{said}", capsys.readouterr().out)


def test_an_end_that_cannot_be_judged(
    session: Session, history: Callable[..., Path], capsys: Caught
) -> None:
    assert bisect(history("broken", "bad")) == 2
    assert "the good commit" in capsys.readouterr().err


@pytest.mark.parametrize("state", ["error", "cut", "host"])
def test_the_host_cannot_judge_an_end(
    session: Session, history: Callable[..., Path], state: str
) -> None:
    assert bisect(history("good", state)) == 3


def test_the_host_breaks_on_the_way(
    session: Session, history: Callable[..., Path], capsys: Caught, tmp_path: Path
) -> None:
    """What was answered until then can be replayed."""
    assert bisect(history("good", "host", "bad", "bad", "bad")) == 3
    assert "QEMU is missing" in capsys.readouterr().err
    assert "git bisect bad" in (tmp_path / "out" / "bisect.log").read_text()


def test_no_verdict_anywhere_is_the_hosts_trouble(
    session: Session, history: Callable[..., Path], capsys: Caught
) -> None:
    """The good commit is asked once more before a commit is blamed for having none."""
    session.later = {"good": "error"}
    assert bisect(history("good", "error 1", "error 2", "bad")) == 3


def test_what_is_not_the_same_twice(
    session: Session, history: Callable[..., Path], capsys: Caught
) -> None:
    session.later = {"good": "bad"}
    assert bisect(history("good", "error 1", "error 2", "bad")) == 3
    assert "cannot be bisected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--good", "nowhere"), "has no commit 'nowhere'"),
        (("--good", "HEAD"), "are the same"),
        (("--good", "HEAD", "--bad", "HEAD~1"), "swap them"),
        (("--case", "write.no_such"), "there is no case 'write.no_such'"),
        (("--case", OLD_CASE), f"{OLD_CASE} is not for the ABI of 6.13"),
        (("--abi", "5.17"), "5.18"),
        (("--tree", "/nowhere"), "/nowhere"),
        (("--", "no/such/file"), "cannot begin"),
    ],
)
def test_mistakes(
    session: Session,
    history: Callable[..., Path],
    capsys: Caught,
    tmp_path: Path,
    words: Sequence[str],
    said: str,
) -> None:
    assert bisect(history("good", "good", "bad"), *words) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not list((tmp_path / "cache" / "bisect").glob("*/"))


def test_a_directory_that_is_not_empty(session: Session, history: Callable[..., Path]) -> None:
    tree = history("good", "bad")
    (tree.parent / "out").mkdir()
    (tree.parent / "out" / "file").touch()
    assert bisect(tree) == 2
    assert session.judged == []


def test_interrupted(session: Session, history: Callable[..., Path], tmp_path: Path) -> None:
    assert bisect(history("good", "good", "stopped", "bad", "bad")) == 130
    assert not list((tmp_path / "cache" / "bisect").glob("*/"))
    assert "git bisect start" in (tmp_path / "out" / "bisect.log").read_text()


# The command with a session that says that it began, and does not end.
HANGING = """\
import sys, time
from conformance import bisect_command
from conformance.cli import main

def session(*words, **named):
    print("began", flush=True)
    time.sleep(60)

bisect_command.session = session
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_one_that_is_ended(
    history: Callable[..., Path], tmp_path: Path, number: signal.Signals
) -> None:
    tree = history("good", "bad")
    words = ["bisect", "--good", "HEAD~1", "--bad", "HEAD", "--case", CASE, "--tree", str(tree)]
    with subprocess.Popen(
        [sys.executable, "-c", HANGING, *words, "--out", str(tmp_path / "out")],
        env={**os.environ, "UEVT_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        assert any("began" in line for line in command.stdout)
        assert list((tmp_path / "cache" / "bisect").glob("*/"))
        command.send_signal(number)
        assert command.wait(30) == 130
    assert not list((tmp_path / "cache" / "bisect").glob("*/"))
    assert Store(tmp_path / "cache").root.is_dir()


def test_cases_by_their_id_or_their_functions() -> None:
    whole = Chosen.named([FUNCTION])
    assert CASE in whole.cases[0][1]
    assert len(whole.cases[0][1]) > 1
    assert Chosen.named([CASE]).cases[0][1] == {CASE}
    assert Chosen.named([CASE, FUNCTION]) == whole
    assert len(Chosen.named([FUNCTION, OLD_CASE]).cases) == 2
    with pytest.raises(UserMistake) as raised:
        Chosen.named(["multi_format.nane"])
    assert FUNCTION in raised.value.mend
