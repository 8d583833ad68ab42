"""`uevt bisect` over small histories: which commit is found and what is reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.cli.bisect import walk
from tests.bisect.conftest import CASE, FUNCTION, Bisect, History, Session
from tests.kernels.user_trees import everything, git


def test_commit_and_evidence_are_reported(bisect: Bisect, history: History) -> None:
    tree = history("good", "good", "good", "bad", "bad", "bad")
    before = everything(tree)
    output = bisect(tree).out
    assert everything(tree) == before
    sha = git(tree, "rev-parse", "HEAD~2")
    assert f"the first bad commit is\n  {sha}\n    number 3:" in output
    assert "a <a@example.org>" in output
    assert f"FAIL {CASE} (contract, " in output
    for part in ("  program, paths below ", "  decided by  ", "  documents   "):
        assert part in output
    assert "\x1b" not in output
    # Except for paths.
    table = output.partition("FAIL")[0].splitlines()[2:]
    assert max(map(len, table)) <= 78
    last = output.splitlines()[-1]
    assert last.startswith(f"uevt: first bad commit {sha[:12]}")


def test_terminal_shows_the_commit_being_judged(
    bisect: Bisect, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "is_terminal", lambda *_: True)
    first = bisect(history("good", "bad")).out.split("\n")[2]
    judging, _, judged = first.partition("\r\x1b[K")
    assert "..." in judging
    assert "good " in judged


def test_bare_repository(bisect: Bisect, history: History, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(history("good", "good", "bad")), str(bare))
    bisect(bare)


def test_arguments_of_each_run(bisect: Bisect, session: Session, history: History) -> None:
    tree = history("good", "bad", "bad")
    config = tree.parent / "a.config"
    config.write_text("CONFIG_X=y\n")
    more = ("--abi", "6.12", "--config", str(config), "--flavour", "debug", "--append", "a b")
    bisect(tree, *more, case_id=FUNCTION, code=3)
    options = session.options[0]
    assert (options.tier, options.exit_style, options.guests) == ("full", "bisect", 1)
    assert (options.abi, options.flavour, options.append) == ("6.12", "debug", ["a b"])
    assert options.config == [str(config)]
    assert CASE in options.keyword.split(" or ")
    assert options.ref == git(tree, "rev-list", "--max-parents=0", "HEAD")


def test_only_selected_cases_count(bisect: Bisect, history: History) -> None:
    """-k selects parts of ids: other selected cases fail everywhere here."""
    bisect(history("good", "good", "bad"))


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("broken", "does not build"),
        ("none", "built without user_events"),
        ("error", "no verdict"),
        ("good@6.1", "is not for the ABI of 6.1"),
        ("good@5.10", "catalog starts with"),
    ],
)
def test_unjudged_commit_is_skipped(bisect: Bisect, history: History, state: str, why: str) -> None:
    tree = history("good", state, "bad@6.13", "bad")
    output = bisect(tree, code=1).out
    assert "one of these is the first bad commit" in output
    assert re.search(rf"skipped: .*{why}", output)
    assert f"FAIL {CASE}" in output
    assert output.splitlines()[-1].startswith("uevt: one of 2 commits")


def test_skipped_commits_are_listed(bisect: Bisect, history: History) -> None:
    tree = history("good", "good", "good", "broken", "good", "bad", "bad")
    sha = git(tree, "rev-parse", "HEAD~3")
    assert f"skipped on the way: {sha[:12]} (does not build)" in bisect(tree).out


def test_pinned_abi_applies_to_all_commits(bisect: Bisect, history: History) -> None:
    tree = history("good", "good@6.1", "bad@6.13", "bad")
    bisect(tree, "--abi", "6.12")
