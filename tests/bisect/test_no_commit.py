"""`uevt bisect` that finds no commit: user mistakes, host trouble, equal ends, signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernels.store.store import Store
from tests.bisect.conftest import CASE, OLD_CASE, Bisect, History, Session

# The command with a session that announces its start and does not end.
HANGING = """\
import sys, time
from conformance.cli.bisect import command
from conformance.cli.main import main

def session(*words, **named):
    print("began", flush=True)
    time.sleep(60)

command.session = session
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("good", "bad", "code", "message"),
    [
        ("bad", "bad", 1, "nothing to find: .*the good commit .* fails already"),
        ("good", "good", 1, "nothing to find: .*does not fail"),
        ("broken", "bad", 2, "the good commit"),
        ("good", "error", 3, ""),
        ("good", "cut", 3, ""),
        ("good", "host", 3, ""),
    ],
)
def test_ends_that_bound_no_commit(
    bisect: Bisect, history: History, good: str, bad: str, code: int, message: str
) -> None:
    output = bisect(history(good, bad), code=code)
    assert re.search(message, output.out if code == 1 else output.err)


def test_no_commit_of_the_paths_is_bad(bisect: Bisect, history: History) -> None:
    tree = history("good@6.11", "good@6.12", "bad")
    output = bisect(tree, "--abi", "6.12", "--", "Makefile", code=1).out
    assert "nothing to find: all commits that touch these paths are good" in output


def test_host_trouble_keeps_the_log(bisect: Bisect, history: History, tmp_path: Path) -> None:
    """The log up to then can be replayed."""
    output = bisect(history("good", "host", "bad", "bad", "bad"), code=3).err
    assert "QEMU is missing" in output
    assert "git bisect bad" in (tmp_path / "out" / "bisect.log").read_text()


@pytest.mark.parametrize(
    ("later", "message"), [("error", "no agent after a boot"), ("bad", "cannot be bisected")]
)
def test_good_commit_is_tested_again_after_runs_without_verdict(
    bisect: Bisect, session: Session, history: History, later: str, message: str
) -> None:
    session.later = {"good": later}
    output = bisect(history("good", "error 1", "error 2", "bad"), code=3).err
    assert message in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--good", "nowhere"), "has no commit 'nowhere'"),
        (("--good", "HEAD"), "are the same"),
        (("--good", "HEAD", "--bad", "HEAD~1"), "swap them"),
        (("--case", "write.no_such"), "there is no case 'write.no_such'"),
        (("--case", OLD_CASE), f"{OLD_CASE} is not for the ABI of 6.13"),
        (("--abi", "5.17"), "5.18"),
        (("--tree", "/nowhere"), "/nowhere"),
        (("--", "no/such/file"), "name other paths, from the top of the repository"),
    ],
)
def test_user_mistakes(
    bisect: Bisect, history: History, tmp_path: Path, words: Sequence[str], message: str
) -> None:
    output = bisect(history("good", "good", "bad"), *words, code=2).err
    assert message in output
    assert "Traceback" not in output
    assert not list((tmp_path / "cache" / "bisect").glob("*/"))


def test_non_empty_directory_is_refused(bisect: Bisect, session: Session, history: History) -> None:
    tree = history("good", "bad")
    (tree.parent / "out").mkdir()
    (tree.parent / "out" / "file").touch()
    bisect(tree, code=2)
    assert session.judged == []


def test_interrupt_keeps_the_log(bisect: Bisect, history: History, tmp_path: Path) -> None:
    bisect(history("good", "good", "stopped", "bad", "bad"), code=130)
    assert not list((tmp_path / "cache" / "bisect").glob("*/"))
    assert "git bisect start" in (tmp_path / "out" / "bisect.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_leaves_no_workspace(
    history: History, tmp_path: Path, number: signal.Signals
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
        assert command.stderr is not None
        assert command.stderr.read() == "uevt: interrupted\n"
    assert not list((tmp_path / "cache" / "bisect").glob("*/"))
    assert Store(tmp_path / "cache").root.is_dir()
