"""Judge one commit for `git bisect`: good, bad or skipped, by the selected cases."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from conformance.abi.profile import Profile, ProfileError, profile_for
from conformance.cases.case import Case
from conformance.cases.variants import all_variants
from conformance.results.case_result import CaseResult, aftermath_of
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.results.outcome import Level, Outcome, RunVerdict, SkipReason, failing
from conformance.results.results_json import NAME, read_results
from conformance.results.run import RunRecord
from conformance.session.launch import Session
from conformance.session.options import default_options
from host.progress import silent
from host.text import closest
from kernels.errors import HostTrouble, UserMistake
from kernels.store.store import Store
from kernels.trees.git_bisect import Answer
from kernels.trees.user_tree import entry_of

# The output of a session, kept next to its results.
LOG = "uevt.log"
_DIGITS = 12
_LINES = 3


class SelectedCases(Struct, frozen=True):
    """Selected cases, each with the ids to run: all of its variants, or some."""

    cases: tuple[tuple[Case, frozenset[str]], ...]

    @classmethod
    def named(cls, names: Iterable[str]) -> SelectedCases:
        """The cases of ids, each that of a case, of what a case left, or of a function.

        Raises UserMistake.
        """
        known: dict[Case, set[str]] = {}
        for each in all_variants():
            known.setdefault(each.case, set()).add(each.id)
        selected: dict[Case, frozenset[str]] = {}
        for name in (aftermath_of(name) or name for name in names):
            found = {
                case: frozenset(ids if name == case.id else {name})
                for case, ids in known.items()
                if name == case.id or name in ids
            }
            if not found:
                every = {case.id for case in known}.union(*known.values())
                close = closest(name, sorted(every))
                hint = f"did you mean {close}?" if close else "docs/results lists all ids"
                raise UserMistake(f"there is no case {name!r}", hint)
            for case, ids in found.items():
                selected[case] = selected.get(case, frozenset()) | ids
        return cls(tuple(selected.items()))

    @property
    def level(self) -> Level:
        """The weakest level of the cases."""
        order = list(Level)
        return max((Level(case.level) for case, _ in self.cases), key=order.index)

    def ids(self, profile: Profile) -> frozenset[str]:
        """The cases that apply to a profile.  Raises UserMistake unless all apply."""
        for case, _ in self.cases:
            if not case.applies(profile):
                # The remaining ones alone could make a bad commit good.
                hint = "name other cases, or another ABI: --abi"
                raise UserMistake(f"{case.id} is not for the ABI of {profile.name}", hint)
        return frozenset().union(*(ids for _, ids in self.cases))


class Judged(Struct, frozen=True):
    """The answer for a commit with its reason; `results` are those of the selected cases.

    `directory` has the files of the run, if there was one.
    """

    answer: Answer
    why: str
    seconds: float = 0.0
    results: tuple[CaseResult, ...] = ()
    directory: Path | None = None
    fail_on: Level = Level.CONTRACT

    @property
    def bad(self) -> list[CaseResult]:
        """The results that make the commit bad."""
        return [result for result in self.results if result.outcome in failing(self.fail_on)]


class NoVerdict(HostTrouble):
    """A run without a verdict on its kernel: an error of the host, or no boot."""


class Judge:
    """Builds commits of a tree and runs the cases on them.

    `given` are the options of every run: tree, abi, config, flavour, append, fail_on.  Each run
    has a directory below `out`.
    """

    def __init__(
        self, given: Namespace, selected: SelectedCases, out: Path, session: Session
    ) -> None:
        self._options = given
        self._selected = selected
        self._out = out
        self._session = session
        self._runs = 0

    def judge(self, sha: str) -> Judged:
        """Judge a commit.

        Raises UserMistake if the cases do not apply to it, NoVerdict, HostTrouble;
        KeyboardInterrupt if a run was interrupted.
        """
        wanted = self._selected.ids(profile_of(self._options, sha))
        began = time.monotonic()
        self._runs += 1
        out = self._out / f"{self._runs:03}-{sha[:_DIGITS]}"
        out.mkdir()
        code = self._run(sha, sorted(wanted), out)
        seconds = time.monotonic() - began
        if not (out / NAME).exists():
            why = _last_lines(out)
            if code == exit_code(Ending.BUILD_FAILED, ExitStyle.BISECT):
                return Judged(Answer.SKIP, "does not build", seconds, directory=out)
            raise HostTrouble(f"no run on {sha[:_DIGITS]}: {why}", f"read {out / LOG}")
        record = read_results(out / NAME)
        results = tuple(each for each in record.cases if (each.aftermath_of or each.id) in wanted)
        answer, why = answer_of(record, results, wanted)
        return Judged(answer, why, seconds, results, out, record.head.fail_on)

    def _run(self, sha: str, ids: list[str], out: Path) -> int:
        """One session; its exit code."""
        options = default_options(**vars(self._options))
        # The new kernel has no durations, and its guests cannot be shared.
        options.ref, options.tier, options.guests = sha, "full", 1
        options.exit_style = ExitStyle.BISECT.value
        options.quiet, options.keyword = False, " or ".join(ids)
        # The directory exists already: it contains the log.
        options.force = True
        with (out / LOG).open("w", encoding="utf-8") as log:
            code = self._session(options, None, str(out), stdout=log, stderr=log)
        if code == exit_code(Ending.INTERRUPTED, ExitStyle.BISECT):
            raise KeyboardInterrupt
        return code


def profile_of(given: Namespace, sha: str) -> Profile:
    """The ABI of a commit: --abi, or the release in its Makefile.

    Raises UserMistake for a tree that is no kernel, or older than any known release.
    """
    entry = entry_of(Path(given.tree), sha, Store(), silent)
    number = entry.name.removeprefix("tree-").removesuffix(f"-{sha[:_DIGITS]}")
    try:
        return profile_for(given.abi or entry.abi_for(number), base=number)
    except ProfileError as error:
        raise UserMistake(str(error), "name another ABI: --abi") from error


def answer_of(
    record: RunRecord, results: tuple[CaseResult, ...], wanted: frozenset[str]
) -> tuple[Answer, str]:
    """The answer for a commit by the results of a run, and the reason.

    A failed case makes it bad, whatever the others are.  Raises NoVerdict.
    """
    if record.verdict is RunVerdict.NOT_BUILT:
        return Answer.SKIP, SkipReason.NOT_BUILT.sentence
    fixed = {each.switch for each in record.contradictions} - {
        each.switch for each in record.contradicted
    }
    adapted = sorted({switch for each in results for switch in each.adapted} - fixed)
    if adapted:
        return Answer.SKIP, f"contradicts its ABI in {', '.join(adapted)}; --abi pins one"
    bad = [each for each in results if each.outcome in failing(record.head.fail_on)]
    if bad:
        more = f" and {len(bad) - 1} more" if bad[1:] else ""
        return Answer.BAD, f"{bad[0].outcome}{more}"
    unjudged = next((each for each in results if each.outcome is Outcome.ERROR), None)
    if unjudged is not None:
        raise NoVerdict(f"{unjudged.id}: {unjudged.reason}", "read its console.log")
    missing = wanted - {each.id for each in results}
    if record.missing or missing:
        raise NoVerdict(record.trouble or f"no result of {min(missing)}", "run it again")
    skipped = next((each for each in results if each.outcome is Outcome.SKIP), None)
    if skipped is not None:
        return Answer.SKIP, SkipReason(skipped.reason).sentence
    return Answer.GOOD, ", ".join(sorted({each.outcome.value for each in results}))


def _last_lines(out: Path) -> str:
    """The last lines of a session's output."""
    lines = (out / LOG).read_text("utf-8", errors="replace").split("\n")
    output = [line.removeprefix("uevt: ") for line in lines if line.strip()]
    return "; ".join(output[-_LINES:]) or "no output"
