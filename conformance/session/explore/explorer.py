"""Run random programs on one guest, and shrink those that diverge from the model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

from msgspec import Struct, field
from msgspec.structs import replace

from conformance.abi.profile import Profile
from conformance.cases.case import Case, Isolation, Tier
from conformance.client.lockstep import Lockstep
from conformance.report.causes import symptom
from conformance.results.case_result import CaseResult
from conformance.results.outcome import UNEXPECTED, Blame, Outcome
from conformance.session.explore.choices import Actions, Choices
from conformance.session.explore.corpus import Corpus, Feature, answers
from conformance.session.explore.vocabulary import ENDING, walk
from conformance.session.worker.worker import Worker
from host.deadline import Deadline

#: Actions that a random program adds to its beginning, at most.
LENGTH = 40
_MOST_TRIES = 150
#: Seconds of shrinking, after which the shortest program so far is reported.
_SHRINKING_S = 120.0
_CASE = Case(
    id="explore.program",
    spec="",
    doc="the model",
    profiles="",
    needs=(),
    tier=Tier.QUICK,
    isolation=Isolation.EVENTS,
    sentence="A random program: the kernel answers as the model does.",
)
# Its numbers count on over all programs of a guest.
_MULTI = "multi_format"
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")

MakeWorker = Callable[[Path], Worker]


class Played(Struct, frozen=True):
    """A program that was run: its choices, its text, its result, and what it reached."""

    actions: Actions
    text: tuple[str, ...]
    result: CaseResult
    operations: int
    reached: frozenset[Feature]


class Counts(Struct):
    """What was done: programs, operations; what the model does not know, by reason."""

    programs: int = 0
    operations: int = 0
    not_modelled: Counter[str] = field(default_factory=Counter)
    no_verdict: Counter[str] = field(default_factory=Counter)

    @property
    def judged(self) -> int:
        """The number of programs that passed or diverged."""
        return self.programs - self.not_modelled.total() - self.no_verdict.total()

    def add(self, other: Counts) -> None:
        """Add those of another explorer."""
        self.programs += other.programs
        self.operations += other.operations
        self.not_modelled += other.not_modelled
        self.no_verdict += other.no_verdict


class Explorer:
    """Random programs on a guest of ``worker``; ``found`` takes those that diverge, shrunk.

    ``shrinking`` takes each of them before it is shrunk.
    ``fresh`` makes a worker in a directory whose guest is restored before every program.
    """

    def __init__(
        self,
        worker: Worker,
        fresh: MakeWorker,
        directory: Path,
        profile: Profile,
        seed: str,
        found: Callable[[Played], None],
        shrinking: Callable[[Played], None],
    ) -> None:
        self._worker = worker
        self._case = case_for(profile)
        self._fresh = fresh
        self._directory = directory
        self._seed = seed
        self._found = found
        self._shrinking = shrinking
        self._corpus = Corpus(None)
        self._random = Random(seed)
        self._symptoms: set[object] = set()
        self._number = 0
        self._last: Played | None = None
        self.counts = Counts()

    def repeat(self, program: Actions) -> Played:
        """Run a kept program."""
        return self._explored(program, more=0)

    def invent(self) -> Played:
        """Run a new program, half of the time one that begins like one of the corpus."""
        known = self._corpus.programs and self._random.randrange(2)
        start = self._corpus.start_of_one(self._random) if known else ()
        return self._explored(start, more=self._random.randint(1, LENGTH))

    def finish(self) -> None:
        """Report what the kernel reported after the last program."""
        self._worker.finish()
        self._report_others()

    def _explored(self, given: Actions, more: int) -> Played:
        self._number += 1
        name = f"explore.program.{self._number}"
        played = play(self._worker, self._case, name, given, more, f"{self._seed}.{self._number}")
        self.counts.programs += 1
        self.counts.operations += played.operations
        result = played.result
        if result.outcome is Outcome.PASS:
            if not self._corpus.add(played.actions, set(played.reached)):
                played = replace(played, reached=frozenset())
        elif result.outcome in UNEXPECTED:
            if symptom(result) not in self._symptoms:
                self._shrinking(played)
                self._report(self._shrunk(played))
            self._symptoms.add(symptom(result))
        else:
            model = result.blame is Blame.MODEL
            counts = self.counts.not_modelled if model else self.counts.no_verdict
            counts[_NUMBER.sub("N", result.reason)] += 1
        self._last = played
        self._report_others()
        return played

    def _report_others(self) -> None:
        """Report results that belong to no program, with the last one that ran."""
        for other in self._worker.take_other_results():
            if self._last is not None and other.outcome in UNEXPECTED:
                self._report(replace(self._last, result=other))

    def _report(self, played: Played) -> None:
        key = symptom(played.result)
        if key not in self._symptoms:
            self._symptoms.add(key)
            self._found(played)

    def _shrunk(self, played: Played) -> Played:
        """The shortest program with the same difference, on guests in their first state."""
        best = played
        deadline = Deadline(_SHRINKING_S, "a shorter program")
        with closing(self._fresh(self._directory / "shrinking")) as worker:

            def shows(actions: Actions) -> bool:
                nonlocal best
                if deadline.expired:
                    return False
                again = play(worker, self._case, "explore.program", actions, 0, "")
                if symptom(again.result) != symptom(played.result):
                    return False
                best = again
                return True

            if shows(played.actions):
                shrink(played.actions, shows, _MOST_TRIES)
        return best


def case_for(profile: Profile) -> Case:
    """The case that stands for all programs."""
    return replace(_CASE, needs=(_MULTI,) if profile.has(_MULTI) else ())


def play(worker: Worker, case: Case, name: str, given: Actions, more: int, seed: str) -> Played:
    """Run a program: the given choices, then ``more`` random actions of a seed."""
    choices = Choices(Random(seed), given, more, ENDING if more else ())
    lockstep: Lockstep | None = None
    lines: list[str] = []
    reached: set[Feature] = set()

    def attempt() -> BaseException | None:
        nonlocal choices, lockstep, reached
        # A second run of a program that lost its guest makes the same choices.
        choices = Choices(Random(seed), given, more, ENDING if more else ())
        lines.clear()
        try:
            user_events = worker.begin()
            lockstep = user_events.lockstep
            reached = walk(user_events, choices, lines)
            lockstep.run()
        except Exception as error:
            return error
        return None

    result, _ = worker.run(case, name, attempt)
    steps = lockstep.steps if lockstep else []
    found = frozenset(reached | answers(steps))
    return Played(choices.actions, tuple(lines), result, len(steps), found)


def shrink(actions: Actions, shows: Callable[[Actions], bool], most: int) -> Actions:
    """The shortest program found with at most ``most`` tries; ``shows`` runs one."""
    tries = most
    while tries > 0:
        for shorter in _shorter(actions):
            tries -= 1
            if shows(shorter):
                actions = shorter
                break
            if tries <= 0:
                break
        else:
            break
    return actions


def _shorter(actions: Actions) -> Iterator[Actions]:
    """Simpler programs, the much simpler ones first."""
    length = len(actions) // 2
    while length:
        # What comes last is needed most often: the difference is there.
        for start in range(0, len(actions) - length + 1, length):
            yield actions[:start] + actions[start + length :]
        length //= 2
    for at, action in enumerate(actions):
        for place, number in enumerate(action):
            # The first number says which action it is.
            if place and number:
                simpler = (*action[:place], 0, *action[place + 1 :])
                yield (*actions[:at], simpler, *actions[at + 1 :])
