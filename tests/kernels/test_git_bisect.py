"""Bisecting a user's repository, which is only read."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from kernels.errors import HostTrouble
from kernels.store.store import Store
from kernels.trees.git_bisect import Answer, Bisection, NotBetween, workspace
from tests.kernels.user_trees import everything, git

History = Callable[[int], tuple[Path, list[str]]]

GOOD, BAD, SKIP = Answer
# Verdicts of the commits after the first; the first is good and the last is bad.
FOUND = [GOOD, GOOD, BAD, BAD, BAD]
SKIPPED = [GOOD, SKIP, SKIP, BAD, BAD]


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Create a repository with so many commits after the first one; all ids, oldest first."""

    def make(number: int) -> tuple[Path, list[str]]:
        repository = tmp_path / "theirs"
        repository.mkdir()
        git(repository, "init", "-q")
        for place in range(number + 1):
            (repository / f"{place % 2}.c").write_text(f"{place}\n")
            git(repository, "add", "-A")
            git(repository, "commit", "-q", "-m", f"number {place}")
        return repository, git(repository, "rev-list", "--reverse", "HEAD").split()

    return make


def begun(tmp_path: Path, repository: Path, ids: list[str], *paths: str) -> Bisection:
    """A bisection between the first and the last commit."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Bisection(repository, ids[0], ids[-1], scratch, paths)


def walked(
    tmp_path: Path, repository: Path, ids: list[str], answers: list[Answer], *paths: str
) -> tuple[Bisection, list[str]]:
    """A finished bisection, and the commits that were judged."""
    bisection = begun(tmp_path, repository, ids, *paths)
    judged: list[str] = []

    def judge(sha: str) -> Answer:
        judged.append(sha)
        assert bisection.steps < len(ids)
        return answers[ids.index(sha) - 1]

    bisection.walk(judge)
    return bisection, judged


def test_first_bad_commit_is_found(tmp_path: Path, history: History) -> None:
    repository, ids = history(5)
    bisection, judged = walked(tmp_path, repository, ids, FOUND)
    assert bisection.between == 5
    assert bisection.suspects == (ids[3],)
    assert len(judged) in (2, 3)
    found = bisection.commit(ids[3])
    assert (found.title, found.author) == ("number 3", "a <a@example.org>")
    assert found.files == ("1.c",)


def test_all_remaining_commits_are_skipped_and_the_repository_is_unchanged(
    tmp_path: Path, history: History
) -> None:
    repository, ids = history(5)
    before = everything(repository)
    bisection, _ = walked(tmp_path, repository, ids, SKIPPED)
    assert set(bisection.suspects) == set(ids[2:5])
    assert everything(repository) == before


def test_adjacent_commits_need_no_judgement(tmp_path: Path, history: History) -> None:
    repository, ids = history(1)
    bisection, judged = walked(tmp_path, repository, ids, [BAD])
    assert (bisection.suspects, judged) == ((ids[1],), [])


def test_only_commits_that_touch_a_path_are_judged(tmp_path: Path, history: History) -> None:
    repository, ids = history(9)
    bisection, judged = walked(tmp_path, repository, ids, [GOOD] * 4 + [BAD] * 5, "1.c")
    assert bisection.between == 5
    assert bisection.suspects == (ids[5],)
    assert {ids.index(sha) % 2 for sha in judged} == {1}


def test_path_that_no_commit_touches_is_refused(tmp_path: Path, history: History) -> None:
    repository, ids = history(3)
    with pytest.raises(NotBetween, match="cannot begin"):
        walked(tmp_path, repository, ids, FOUND, "no/such")


@pytest.mark.parametrize("answers", [FOUND, SKIPPED], ids=["found", "skipped"])
def test_git_replays_the_log(tmp_path: Path, history: History, answers: list[Answer]) -> None:
    """The user can replay the log in a repository with a working tree."""
    repository, ids = history(5)
    bisection, _ = walked(tmp_path, repository, ids, answers)
    log = tmp_path / "log"
    bisection.keep_log(log)
    # Like the original run, the replay exits with 2 if only skipped commits are left.
    words = ["git", "-C", str(repository), "bisect", "replay", str(log)]
    done = subprocess.run(words, capture_output=True, check=False, timeout=60)
    assert done.returncode == (0 if answers is FOUND else 2)
    again = git(repository, "bisect", "log")
    assert [line for line in log.read_text().splitlines() if line[0] != "#"] == [
        line for line in again.splitlines() if line[0] != "#"
    ]
    assert git(repository, "rev-parse", "refs/bisect/bad") in bisection.suspects
    assert not (repository / ".git" / "BISECT_HEAD").exists()


def test_shallow_history(tmp_path: Path, history: History) -> None:
    repository, ids = history(7)
    cut = tmp_path / "cut"
    git(tmp_path, "clone", "-q", "--depth=6", f"file://{repository}", str(cut))
    bisection, _ = walked(tmp_path, cut, ids[2:], FOUND)
    assert bisection.suspects == (ids[5],)


def test_ends_without_history_between_are_refused(tmp_path: Path, history: History) -> None:
    repository, ids = history(3)
    git(repository, "checkout", "-q", "--orphan", "other")
    git(repository, "commit", "-q", "-m", "other")
    other = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "side", ids[1])
    git(repository, "commit", "-q", "--allow-empty", "-m", "side")
    side = git(repository, "rev-parse", "HEAD")
    for number, (good, bad, message) in enumerate(
        [
            (ids[1], ids[1], "are the same"),
            (ids[2], ids[1], "but its descendant"),
            (other, ids[3], "is no ancestor"),
            (side, ids[3], "is no ancestor"),
        ]
    ):
        with pytest.raises(NotBetween, match=message) as raised:
            Bisection(repository, good, bad, tmp_path / str(number))
        if good == side:
            assert ids[1][:12] in raised.value.hint


class Stop(Exception):
    """An exception of a judge."""


def test_exception_of_the_judge_ends_the_walk(tmp_path: Path, history: History) -> None:
    repository, ids = history(5)
    bisection = begun(tmp_path, repository, ids)
    answers = iter([GOOD])

    def judge(sha: str) -> Answer:
        try:
            return next(answers)
        except StopIteration:
            raise Stop from None

    with pytest.raises(Stop):
        bisection.walk(judge)
    assert bisection.suspects == ()
    bisection.keep_log(tmp_path / "log")
    assert "git bisect good" in (tmp_path / "log").read_text()


def test_failing_git_is_host_trouble(tmp_path: Path, history: History) -> None:
    repository, ids = history(5)
    bisection = begun(tmp_path, repository, ids)

    def judge(sha: str) -> Answer:
        (tmp_path / "scratch/repository.git/HEAD").unlink()
        return GOOD

    with pytest.raises(HostTrouble):
        bisection.walk(judge)


def hold_workspace(root: Path, pipe: Connection) -> None:
    """Main function of a child process."""
    with workspace(Store(root)) as directory:
        (directory / "file").touch()
        pipe.send(directory)
        pipe.recv()


def test_workspace_is_removed_after_its_holder(tmp_path: Path) -> None:
    """At once, or when the next one is created; never while its holder lives."""
    store = Store(tmp_path)
    with workspace(store) as directory:
        assert directory.is_dir()
    assert not directory.exists()
    near, far = Pipe()
    holder = get_context("spawn").Process(target=hold_workspace, args=(tmp_path, far), daemon=True)
    holder.start()
    assert near.poll(30)
    theirs: Path = near.recv()
    with workspace(store) as ours:
        assert theirs.is_dir()
        assert ours != theirs
    holder.kill()
    holder.join(30)
    assert theirs.is_dir()
    with workspace(store):
        assert not theirs.exists()
