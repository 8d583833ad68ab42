"""Run one bisection and print it: a line per commit, and the result."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, field

from conformance.cli.bisect.judge import Judge, Judged, NoVerdict
from conformance.report.failure import render_failure
from conformance.results.directory import relative
from conformance.results.exit_codes import Ending, exit_code
from host.text import Outlet, counted, cut, is_terminal, one_line
from kernels.errors import HostTrouble, UserMistake
from kernels.trees.git_bisect import Answer, Bisection, Commit

LOG = "bisect.log"
_WIDTH = 78
_DIGITS = 12
# Number of files of a commit that are listed.
_FILES = 10
# Minimum width of a title, in columns.
_TITLE = 15
# Reasons that are not printed.
_PLAIN = frozenset({"PASS", "FAIL"})
_NOT_FOUND = exit_code(Ending.UNEXPECTED)


class Walk(Struct):
    """A bisection between two commits; its log is kept in `out`, however it ends."""

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
        """Check both ends, bisect, and print the result.

        0 if one commit was found, 1 for none or several.
        """
        try:
            return self._perform(cases, tree)
        finally:
            self.bisection.keep_log(self.out / LOG)

    def _perform(self, cases: str, tree: str) -> int:
        self._say(one_line(f"bisecting {cases} in {tree}"))
        self._say(f"results   {relative(self.out)}")
        if not self._proven():
            return _NOT_FOUND
        self._say(f"{counted(self.bisection.between, 'commit')} may be the first bad one")
        self.bisection.walk(self._answer)
        return self._tell(self.bisection.suspects)

    def _proven(self) -> bool:
        """Whether the cases pass at the good end and fail at the bad one; prints what is wrong.

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
                what = "fails already" if wanted is Answer.GOOD else "does not fail"
                self._evidence(judged)
                self._say(f"nothing to find: the {name} commit {sha[:_DIGITS]} {what}")
                return False
        return True

    def _answer(self, sha: str) -> Answer:
        """The answer of a commit for `git bisect`."""
        self.bisection.keep_log(self.out / LOG)
        step = str(len(self.judged) - 1)
        return self._judged(step, sha, self._settled, self.bisection.steps).answer

    def _settled(self, sha: str) -> Judged:
        """Judge a commit; skip one that cannot be judged for a reason of its own."""
        try:
            return self.judge.judge(sha)
        except UserMistake as error:
            return Judged(Answer.SKIP, str(error))
        except NoVerdict as error:
            # The good commit had a verdict on this machine: judge it again to tell them apart.
            control = self.judge.judge(self.good)
            if control.answer is not Answer.GOOD:
                raise HostTrouble(
                    f"the good commit was judged differently the second time: {control.why}",
                    f"read {control.directory}: what is not the same twice cannot be bisected",
                ) from error
            return Judged(Answer.SKIP, f"no verdict: {error}")

    def _judged(
        self, name: str, sha: str, judge: Callable[[str], Judged], left: int | None = None
    ) -> Judged:
        """One line: the commit, its answer, the time, and how many are left."""
        title = one_line(self.bisection.title(sha))
        head = f"  {name:<4} {sha[:_DIGITS]}"
        began = time.monotonic()
        if self.moving:
            self.outlet.write(cut(f"{head}  ...          {title}", _WIDTH))
        try:
            judged = judge(sha)
        except BaseException:
            if self.moving:
                # What ends the bisection is printed on a line of its own.
                self.outlet.write("\n")
            raise
        self.judged[sha] = judged
        minutes, seconds = divmod(round(time.monotonic() - began), 60)
        togo = "" if left is None else f"{left} left  "
        line = f"{head}  {judged.answer:<4} {minutes:>3}:{seconds:02}  {togo}"
        why = "" if judged.why in _PLAIN else f" ({one_line(judged.why)})"
        room = _WIDTH - len(line) - len(why)
        if room < _TITLE:
            text = cut(line + title, _WIDTH) + f"\n      {why}"
        else:
            text = line + cut(title, room) + why
        self.outlet.write(("\r\x1b[K" if self.moving else "") + text + "\n")
        return judged

    def _tell(self, suspects: tuple[str, ...]) -> int:
        if not suspects:
            self._say("nothing to find: all commits that touch these paths are good; name others")
            return _NOT_FOUND
        found = len(suspects) == 1
        skipped = {s: j for s, j in self.judged.items() if j.answer is Answer.SKIP}
        self._say("")
        several = "one of these is the first bad commit; those skipped could not be judged"
        self._say("the first bad commit is" if found else several)
        for sha in suspects:
            self._describe(self.bisection.commit(sha), skipped.pop(sha, None))
        for sha, judged in skipped.items():
            self._say(f"skipped on the way: {sha[:_DIGITS]} ({one_line(judged.why)})")
        judged_bad = {sha for sha, each in self.judged.items() if each.answer is Answer.BAD}
        bad = next(sha for sha in suspects if sha in judged_bad)
        self._evidence(self.judged[bad])
        minutes, seconds = divmod(round(time.monotonic() - self.began), 60)
        self._say(f"log       {relative(self.out / LOG)} (git bisect replay reads it)")
        last = f"first bad commit {bad[:_DIGITS]}" if found else f"one of {len(suspects)} commits"
        self._say(f"uevt: {last}, {len(self.judged)} commits judged in {minutes}:{seconds:02}")
        return exit_code(Ending.PASS) if found else _NOT_FOUND

    def _describe(self, commit: Commit, skipped: Judged | None) -> None:
        why = f" (skipped: {one_line(skipped.why)})" if skipped else ""
        self._say(f"  {commit.sha}{why}")
        for text in (commit.title, f"{commit.author}, {commit.day}", *commit.files[:_FILES]):
            self._say(cut(f"    {one_line(text)}", _WIDTH))
        if commit.files[_FILES:]:
            self._say(f"    and {len(commit.files) - _FILES} files more")

    def _evidence(self, judged: Judged) -> None:
        """The failures of the first bad commit."""
        for result in judged.bad:
            self._say("")
            for line in render_failure(result):
                self._say(line)
        if judged.directory is not None:
            self._say("")
            self._say(f"results   {relative(judged.directory)}")

    def _say(self, line: str) -> None:
        self.outlet.write(line + "\n")
