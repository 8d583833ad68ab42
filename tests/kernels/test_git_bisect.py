"""Bisecting a user's repository, which is only read."""

from __future__ import annotations

import subprocess
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from kernels.errors import HostTrouble
from kernels.store.store import Store
from kernels.trees.git_bisect import Answer, Bisection, NotBetween, workspace
from tests.kernels.user_trees import commit, everything, git

GOOD, BAD, SKIP = Answer
# Verdicts of the commits after the first; the first is good and the last is bad.
FOUND = [GOOD, GOOD, BAD, BAD, BAD]
SKIPPED = [GOOD, SKIP, SKIP, BAD, BAD]


class History:
    """A repository of numbered commits, and their ids, oldest first."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.repository = directory / "theirs"
        self.repository.mkdir()
        git(self.repository, "init", "-q")
        self.ids: list[str] = []

    def grow(self, number: int) -> None:
        """Add so many commits."""
        for place in range(number):
            (self.repository / f"{place % 2}.c").write_text(f"{place}\n")
            git(self.repository, "add", "-A")
            git(self.repository, "commit", "-q", "-m", f"number {place}")
            self.ids.append(git(self.repository, "rev-parse", "HEAD"))

    def begin(self, *paths: str) -> Bisection:
        """A bisection between the first and the last commit."""
        scratch = self.directory / "scratch"
        scratch.mkdir()
        return Bisection(self.repository, self.ids[0], self.ids[-1], scratch, paths)

    def walk(self, answers: list[Answer], *paths: str) -> tuple[Bisection, list[str]]:
        """A finished bisection, and the commits that were judged."""
        bisection = self.begin(*paths)
        judged: list[str] = []

        def judge(sha: str) -> Answer:
            judged.append(sha)
            assert bisection.steps < len(self.ids)
            return answers[self.ids.index(sha) - 1]

        bisection.walk(judge)
        return bisection, judged


@pytest.fixture
def history(tmp_path: Path, request: pytest.FixtureRequest) -> History:
    """Six commits, or as many as the test's parameter says."""
    history = History(tmp_path)
    history.grow(getattr(request, "param", 6))
    return history


def of(commits: int) -> pytest.MarkDecorator:
    """Let a history have so many commits."""
    return pytest.mark.parametrize("history", [commits], indirect=True, ids=[f"{commits} commits"])


def test_first_bad_commit_is_found(history: History) -> None:
    bisection, judged = history.walk(FOUND)
    assert bisection.between == 5
    assert bisection.suspects == (history.ids[3],)
    assert len(judged) in (2, 3)
    found = bisection.commit(history.ids[3])
    assert (found.title, found.author) == ("number 3", "a <a@example.org>")
    assert found.files == ("1.c",)


def test_files_of_a_merge_are_those_of_the_merged_branch(history: History) -> None:
    repository, ids = history.repository, history.ids
    git(repository, "checkout", "-q", "-b", "side", ids[2])
    (repository / "side.c").touch()
    git(repository, "add", "side.c")
    commit(repository)
    git(repository, "checkout", "-q", "--detach", ids[-1])
    git(repository, "merge", "-q", "--no-ff", "-m", "merge", "side")
    ids.append(git(repository, "rev-parse", "HEAD"))
    assert history.begin().commit(ids[-1]).files == ("side.c",)


def test_all_skipped_commits_remain_and_the_repository_is_unchanged(history: History) -> None:
    before = everything(history.repository)
    bisection, _ = history.walk(SKIPPED)
    assert set(bisection.suspects) == set(history.ids[2:5])
    assert everything(history.repository) == before


@of(2)
def test_adjacent_commits_need_no_judgement(history: History) -> None:
    bisection, judged = history.walk([BAD])
    assert (bisection.suspects, judged) == ((history.ids[1],), [])


@of(10)
def test_only_commits_that_touch_a_path_are_judged(history: History) -> None:
    bisection, judged = history.walk([GOOD] * 4 + [BAD] * 5, "1.c")
    assert bisection.between == 5
    assert bisection.suspects == (history.ids[5],)
    assert {history.ids.index(sha) % 2 for sha in judged} == {1}


@of(10)
def test_only_commits_that_touch_a_path_remain(history: History) -> None:
    """git's log lists all those in between."""
    bisection, _ = history.walk([GOOD] * 2 + [SKIP] * 6 + [BAD], "1.c")
    assert [history.ids.index(sha) for sha in bisection.suspects] == [9, 7, 5, 3]


@of(7)
def test_none_remains_if_all_that_touch_a_path_are_good(history: History) -> None:
    bisection, _ = history.walk([GOOD] * 5 + [BAD], "1.c")
    assert bisection.suspects == ()


@of(4)
def test_path_that_no_commit_touches_is_refused(history: History) -> None:
    with pytest.raises(NotBetween, match="cannot begin"):
        history.walk(FOUND, "no/such")


@pytest.mark.parametrize("answers", [FOUND, SKIPPED], ids=["found", "skipped"])
def test_git_replays_the_log(tmp_path: Path, history: History, answers: list[Answer]) -> None:
    """The user can replay the log in a repository with a working tree."""
    repository, log = history.repository, tmp_path / "log"
    bisection, _ = history.walk(answers)
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


@of(8)
def test_shallow_history(tmp_path: Path, history: History) -> None:
    cut = tmp_path / "cut"
    git(tmp_path, "clone", "-q", "--depth=6", f"file://{history.repository}", str(cut))
    history.repository, history.ids = cut, history.ids[2:]
    bisection, _ = history.walk(FOUND)
    assert bisection.suspects == (history.ids[3],)


@of(4)
def test_ends_without_history_between_are_refused(tmp_path: Path, history: History) -> None:
    repository, ids = history.repository, history.ids
    git(repository, "checkout", "-q", "--orphan", "other")
    other = commit(repository)
    git(repository, "checkout", "-q", "-b", "side", ids[1])
    side = commit(repository)
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
    assert ids[1][:12] in raised.value.hint


def test_exception_of_the_judge_ends_the_walk(tmp_path: Path, history: History) -> None:
    bisection = history.begin()
    answers = iter([GOOD])
    with pytest.raises(StopIteration):
        bisection.walk(lambda _: next(answers))
    assert bisection.suspects == ()
    bisection.keep_log(tmp_path / "log")
    assert "git bisect good" in (tmp_path / "log").read_text()


def test_failing_git_is_host_trouble(tmp_path: Path, history: History) -> None:
    bisection = history.begin()

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
