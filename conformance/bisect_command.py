"""`uevt bisect`: the first commit of a tree at which a case fails."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from conformance.bisect_judge import Chosen, Judge, Judged, NoVerdict, profile_of
from conformance.report.exits import Ending, exit_code
from conformance.report.failure import render_failure
from conformance.report.rundir import claim, default_directory, link_latest, unused
from conformance.report.text import Outlet, is_terminal, one_line
from conformance.sessions import ROOT, session, settle_directories
from kernels.bisection import Answer, Bisection, Commit, workspace
from kernels.errors import HostTrouble, UserMistake
from kernels.progress import StreamProgress
from kernels.store import Store
from kernels.trees import entry_of

LOG = "bisect.log"
_WIDTH = 78
_DIGITS = 12
# Of a commit that touches many files so many are named.
_FILES = 10
_NOT_FOUND = exit_code(Ending.UNEXPECTED)


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("bisect", help="find the commit at which a case began to fail")
    add = parser.add_argument
    add("--good", required=True, metavar="A", help="a commit at which the cases pass")
    add("--bad", required=True, metavar="B", help="a later one at which one of them fails")
    add(
        "--case",
        action="append",
        required=True,
        metavar="ID",
        help="a case, or all variants of a function; several times for several",
    )
    add(
        "--tree", default=".", metavar="DIR", help="the repository, which is only read (default: .)"
    )
    add("--abi", metavar="A", help="judge all commits alike (default: each by its own release)")
    add("--config", action="append", default=[], metavar="FILE", help="configuration to add")
    add("--flavour", metavar="F", help="debug, gcov or fault: kernels that check more")
    add("--append", action="append", default=[], metavar="ARGS", help="kernel arguments to add")
    add("--out", metavar="DIR", help="where the log and all results go (default: below results/)")
    add("path", nargs="*", metavar="PATH", help="only commits that touch one of these, behind --")
    parser.set_defaults(perform=perform)


def perform(arguments: Namespace) -> int:
    """0 where the commit was found, 1 where there is none or too many; raises as uevt runs."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Like Ctrl-C: what is begun is put away.
        signal.signal(number, signal.default_int_handler)
    settle_directories()
    chosen = Chosen.named(arguments.case)
    given = Namespace(
        tree=str(Path(arguments.tree).absolute()),
        abi=arguments.abi,
        config=[str(Path(each).absolute()) for each in arguments.config],
        flavour=arguments.flavour,
        append=arguments.append,
    )
    store, progress = Store(), StreamProgress(sys.stderr)
    good, bad = (_resolved(given.tree, ref, store) for ref in (arguments.good, arguments.bad))
    with workspace(store, progress) as scratch:
        bisection = Bisection(Path(given.tree), good, bad, scratch, arguments.path)
        for sha in (good, bad):
            chosen.ids(profile_of(given, sha))
        out = _directory(arguments.out)
        walk = Walk(bisection, Judge(given, chosen, out, session), good, bad, out)
        with _logged(walk, arguments.out):
            return walk.perform(", ".join(arguments.case), given.tree)


def _resolved(tree: str, ref: str, store: Store) -> str:
    """The full id of a commit that holds a kernel.  Raises UserMistake."""
    sha = entry_of(Path(tree), ref, store, StreamProgress(sys.stderr)).source.ref
    assert sha is not None
    return sha


def _directory(given: str | None) -> Path:
    out = Path(given).absolute() if given else None
    if out is None:
        out = unused(default_directory(ROOT / "results", "bisect", datetime.now(UTC)))
    claim(out)
    return out


@contextmanager
def _logged(walk: Walk, given: str | None) -> Iterator[None]:
    """What was found out is kept, however it ends."""
    try:
        yield
    finally:
        walk.bisection.keep_log(walk.out / LOG)
        if given is None:
            link_latest(walk.out)


@dataclass(slots=True)
class Walk:
    """One bisection as its user sees it."""

    bisection: Bisection
    judge: Judge
    good: str
    bad: str
    out: Path
    judged: dict[str, Judged] = field(default_factory=dict)
    outlet: Outlet = field(default_factory=lambda: Outlet(sys.stdout))
    moving: bool = field(default_factory=lambda: is_terminal(sys.stdout, os.environ))
    began: float = field(default_factory=time.monotonic)

    def perform(self, cases: str, tree: str) -> int:
        """Prove both ends, walk, and tell what was found; the exit code."""
        self._say(one_line(f"{cases} in {tree}, kept in {_shown(self.out)}"))
        if not self._proven():
            return _NOT_FOUND
        count = self.bisection.between
        self._say(f"{count} commit{'s' if count > 1 else ''} may be the first bad one")
        self.bisection.walk(self._answer)
        return self._tell(self.bisection.suspects)

    def _proven(self) -> bool:
        """Whether the cases pass at one end and fail at the other; what is wrong is said.

        Raises UserMistake for an end that cannot be judged.
        """
        for name, sha, wanted in (("good", self.good, Answer.GOOD), ("bad", self.bad, Answer.BAD)):
            judged = self._judged(name, sha, self.judge.judge)
            if judged.answer is Answer.SKIP:
                raise UserMistake(
                    f"the {name} commit {sha[:_DIGITS]} cannot be judged: {judged.why}",
                    f"name another one, or read {judged.directory}",
                )
            if judged.answer is not wanted:
                said = "fails already" if wanted is Answer.GOOD else "does not fail"
                self._evidence(judged)
                self._say(f"nothing to find: the {name} commit {sha[:_DIGITS]} {said}")
                return False
        return True

    def _answer(self, sha: str) -> Answer:
        """What `git bisect run` is told of a commit."""
        self.bisection.keep_log(self.out / LOG)
        if sha in self.judged:
            return self.judged[sha].answer
        step = str(len(self.judged) - 1)
        return self._judged(step, sha, self._settled, self.bisection.steps).answer

    def _settled(self, sha: str) -> Judged:
        """As the cases say; a commit that only itself keeps from being judged is skipped."""
        try:
            return self.judge.judge(sha)
        except UserMistake as error:
            return Judged(Answer.SKIP, str(error))
        except NoVerdict as error:
            # Is it this kernel, or this machine?  The good one had a verdict here.
            control = self.judge.judge(self.good)
            if control.answer is not Answer.GOOD:
                raise HostTrouble(
                    f"the good commit had another answer when it was asked again: {control.why}",
                    f"read {control.directory}: what is not the same twice cannot be bisected",
                ) from error
            return Judged(Answer.SKIP, f"no verdict: {error}")

    def _judged(
        self, name: str, sha: str, judge: Callable[[str], Judged], left: int | None = None
    ) -> Judged:
        """One line: the commit, what became of it, time, and how many are left."""
        title = one_line(self.bisection.title(sha))
        head = f"  {name:<4} {sha[:_DIGITS]}"
        began = time.monotonic()
        if self.moving:
            self.outlet.write(_cut(f"{head}  ...          {title}"))
        judged = judge(sha)
        self.judged[sha] = judged
        minutes, seconds = divmod(round(time.monotonic() - began), 60)
        togo = "" if left is None else f"{left} left"
        word = judged.answer.name.lower()
        line = f"{head}  {word:<4} {minutes:>3}:{seconds:02}  {togo:<7} "
        why = one_line(judged.why)
        if len(line) + len(why) + 20 > _WIDTH:
            text = _cut(line + title) + f"\n       {why}"
        else:
            room = _WIDTH - len(line) - len(why) - 3
            text = line + _cut(title, room) + f" ({why})"
        self.outlet.write(("\r\x1b[K" if self.moving else "") + text + "\n")
        return judged

    def _tell(self, suspects: tuple[str, ...]) -> int:
        found = len(suspects) == 1
        skipped = {s: j for s, j in self.judged.items() if j.answer is Answer.SKIP}
        self._say("")
        if found:
            self._say("the first bad commit is")
        else:
            self._say("one of these is the first bad commit; those skipped could not be judged")
        for sha in suspects:
            self._describe(self.bisection.commit(sha), skipped.pop(sha, None))
        for sha, judged in skipped.items():
            self._say(f"skipped on the way: {sha[:_DIGITS]} ({one_line(judged.why)})")
        bad = next(s for s in suspects if s in self.judged and s not in skipped)
        self._evidence(self.judged[bad])
        minutes, seconds = divmod(round(time.monotonic() - self.began), 60)
        self._say(f"log       {_shown(self.out / LOG)} (git bisect replay reads it)")
        last = f"first bad commit {bad[:_DIGITS]}" if found else f"one of {len(suspects)} commits"
        self._say(f"uevt: {last}, {len(self.judged)} kernels in {minutes}:{seconds:02}")
        return exit_code(Ending.PASS) if found else _NOT_FOUND

    def _describe(self, commit: Commit, skipped: Judged | None) -> None:
        why = f" (skipped: {one_line(skipped.why)})" if skipped else ""
        self._say(f"  {commit.sha}{why}")
        for text in (commit.title, f"{commit.author}, {commit.day}", *commit.files[:_FILES]):
            self._say(_cut(f"    {one_line(text)}"))
        if commit.files[_FILES:]:
            self._say(f"    and {len(commit.files) - _FILES} files more")

    def _evidence(self, judged: Judged) -> None:
        """What the cases showed where they failed."""
        for result in judged.bad:
            self._say("")
            for line in render_failure(result):
                self._say(line)
        if judged.directory is not None:
            self._say("")
            self._say(f"results   {_shown(judged.directory)}")

    def _say(self, line: str) -> None:
        self.outlet.write(line + "\n")


def _shown(path: Path) -> Path:
    """As short as it can be said from here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _cut(text: str, width: int = _WIDTH) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
