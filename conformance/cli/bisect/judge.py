"""What one commit is to `git bisect run`: good, bad or none of both, by the cases asked about."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from conformance.abi.profile import Profile, ProfileError, profile_for
from conformance.cases.case import Case
from conformance.cases.discovery import case_modules
from conformance.report.specification.page import surfaces
from conformance.results.case_result import UNEXPECTED, CaseResult, Outcome, RunVerdict, SkipReason
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.results.results_json import NAME, read_results
from conformance.results.run import RunRecord
from conformance.session.launch import Session
from conformance.session.options import declare
from host.progress import silent
from kernels.errors import HostTrouble, UserMistake
from kernels.store.store import Store
from kernels.trees.git_bisect import Answer
from kernels.trees.user_tree import entry_of

# What a session says of its trouble, standard output and error, is kept beside its results.
SAID = "uevt.log"
_GOOD = frozenset({Outcome.PASS, Outcome.XFAIL})
_DIGITS = 12
_LINES = 3


class UnknownCase(UserMistake):
    """A case id, or that of a function, that there is not."""


class NotForIt(UserMistake):
    """A case is not for kernels of this ABI."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Cases, and of each the ids that were asked for: all of its variants, or some."""

    cases: tuple[tuple[Case, frozenset[str]], ...]

    @classmethod
    def named(cls, names: Iterable[str]) -> Chosen:
        """The cases of these ids, each of a case or of its function.  Raises UnknownCase."""
        known = {
            each.case: frozenset(f"{each.case.id}.{row}" for row in each.variants) or {each.case.id}
            for surface in surfaces(case_modules())
            for chapter in surface.chapters
            for each in chapter.sentences
        }
        chosen: dict[Case, frozenset[str]] = {}
        for name in names:
            found = {
                case: frozenset(ids if name == case.id else {name})
                for case, ids in known.items()
                if name == case.id or name in ids
            }
            if not found:
                every = {case.id for case in known}.union(*known.values())
                close = get_close_matches(name, sorted(every), n=1)
                hint = f"did you mean {close[0]}?" if close else "docs/results lists all ids"
                raise UnknownCase(f"there is no case {name!r}", hint)
            for case, ids in found.items():
                chosen[case] = chosen.get(case, frozenset()) | ids
        return cls(tuple(chosen.items()))

    def ids(self, profile: Profile) -> frozenset[str]:
        """Those that a kernel of a profile is judged by.  Raises NotForIt unless all cases are."""
        for case, _ in self.cases:
            if not case.applies(profile):
                # The others alone would call it good.
                hint = "name other cases, or another ABI: --abi"
                raise NotForIt(f"{case.id} is not for the ABI of {profile.name}", hint)
        return frozenset().union(*(ids for _, ids in self.cases))


@dataclass(frozen=True, slots=True)
class Judged:
    """A commit's answer and the reason for it; `results` are those of the cases asked about.

    `directory` has all that the run left behind, where there was one.
    """

    answer: Answer
    why: str
    seconds: float = 0.0
    results: tuple[CaseResult, ...] = ()
    directory: Path | None = None

    @property
    def bad(self) -> list[CaseResult]:
        """The results that make it bad."""
        return [result for result in self.results if result.outcome in UNEXPECTED]


class NoVerdict(HostTrouble):
    """A run that says nothing of its kernel: the host's trouble, or a kernel without a boot."""


class Judge:
    """Builds commits of a tree and asks them the cases.

    `given` are the options that every run has: tree, abi, config, flavour, append.  What runs
    leave is kept in directories of their own below `out`.
    """

    def __init__(self, given: Namespace, chosen: Chosen, out: Path, session: Session) -> None:
        self._given = given
        self._chosen = chosen
        self._out = out
        self._session = session
        self._runs = 0

    def judge(self, sha: str) -> Judged:
        """What the cases say of a commit.

        Raises UserMistake for one that the cases are not for, NoVerdict, HostTrouble;
        KeyboardInterrupt when a run was asked to end.
        """
        wanted = self._chosen.ids(profile_of(self._given, sha))
        began = time.monotonic()
        self._runs += 1
        out = self._out / f"{self._runs:03}-{sha[:_DIGITS]}"
        out.mkdir()
        code = self._run(sha, sorted(wanted), out)
        seconds = time.monotonic() - began
        if not (out / NAME).exists():
            why = _said(out)
            if code == exit_code(Ending.BUILD_FAILED, ExitStyle.BISECT):
                return Judged(Answer.SKIP, "does not build", seconds, directory=out)
            raise HostTrouble(f"no run on {sha[:_DIGITS]}: {why}", f"read {out / SAID}")
        record = read_results(out / NAME)
        results = tuple(each for each in record.cases if each.id in wanted)
        answer, why = answer_of(record, results, wanted)
        return Judged(answer, why, seconds, results, out)

    def _run(self, sha: str, ids: list[str], out: Path) -> int:
        """One session; its exit code."""
        parser = ArgumentParser()
        declare(parser.add_argument)
        options = parser.parse_args([])
        for name, value in vars(self._given).items():
            setattr(options, name, value)
        # Neither of what was run before nor of how guests are shared is anything known.
        options.ref, options.tier, options.guests = sha, "full", 1
        options.exit_style = ExitStyle.BISECT.value
        options.quiet, options.keyword = False, " or ".join(ids)
        # The directory has the log in it.
        options.force = True
        with (out / SAID).open("w", encoding="utf-8") as log:
            code = self._session(options, None, str(out), stdout=log, stderr=log)
        if code == exit_code(Ending.INTERRUPTED, ExitStyle.BISECT):
            raise KeyboardInterrupt
        return code


def profile_of(given: Namespace, sha: str) -> Profile:
    """What a commit of a tree is judged by: --abi, or the release that its Makefile says.

    Raises UserMistake for what is no kernel, or older than all that is known.
    """
    entry = entry_of(Path(given.tree), sha, Store(), silent)
    number = entry.name.removeprefix("tree-").removesuffix(f"-{sha[:_DIGITS]}")
    try:
        return profile_for(given.abi or entry.abi_for(number), base=number)
    except ProfileError as error:
        raise NotForIt(str(error), "name another ABI: --abi") from error


def answer_of(
    record: RunRecord, results: tuple[CaseResult, ...], wanted: frozenset[str]
) -> tuple[Answer, str]:
    """What a run's results of the cases wanted make of its commit, and why.

    One that fails is bad, whatever the others are.  Raises NoVerdict where the run says nothing.
    """
    if record.verdict is RunVerdict.NOT_BUILT:
        return Answer.SKIP, SkipReason.NOT_BUILT.sentence
    adapted = sorted({switch for each in results for switch in each.adapted})
    if adapted:
        return Answer.SKIP, f"contradicts its ABI in {', '.join(adapted)}; --abi pins one"
    bad = [each for each in results if each.outcome in UNEXPECTED]
    if bad:
        more = f" and {len(bad) - 1} more" if bad[1:] else ""
        return Answer.BAD, f"{bad[0].outcome}{more}"
    unjudged = next((each for each in results if each.outcome is Outcome.ERROR), None)
    if unjudged is not None:
        raise NoVerdict(f"{unjudged.id}: {unjudged.reason}", "read its console.log")
    missing = wanted - {each.id for each in results}
    if record.missing or missing:
        raise NoVerdict(record.trouble or f"no result of {min(missing)}", "run it again")
    skipped = next((each for each in results if each.outcome not in _GOOD), None)
    if skipped is not None:
        return Answer.SKIP, SkipReason(skipped.reason).sentence
    known = any(each.outcome is Outcome.XFAIL for each in results)
    return Answer.GOOD, "XFAIL" if known else "PASS"


def _said(out: Path) -> str:
    """The last things that a session said."""
    lines = (out / SAID).read_text("utf-8", errors="replace").split("\n")
    told = [line.removeprefix("uevt: ") for line in lines if line.strip()]
    return "; ".join(told[-_LINES:]) or "it said nothing"
