"""Replay recorded answers of a kernel against the model."""

from __future__ import annotations

import pickle
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from conformance.abi.adapted_profile import AdaptedProfile
from conformance.abi.profile import Profile, profile_for
from conformance.abi.switches import BY_NAME
from conformance.cases.variants import Variant, all_variants
from conformance.client.executor import Deadline
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.ops import Observation, Operation, Watch

# Seconds of CPU time after which a signal ends the process: the longest case takes 2.
CASE_S = 10


class Answered(Struct, frozen=True):
    """An operation, the kernel's answer, and whether it repeats the one before."""

    operation: Operation
    seen: Observation
    again: bool


class Recording(Struct, frozen=True):
    """One run of a case: the serial of its names, the next id of a format, and the answers."""

    serial: int
    multi_id: int
    answers: Sequence[Answered]


class Strayed(Exception):
    """The program performs an operation that the kernel has not answered."""


class Replayed(Struct):
    """An executor that answers as the kernel did, and the deadline of its recorded repetitions."""

    answers: Sequence[Answered]
    _at: int = 0
    _again: bool = False

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[Watch]
    ) -> list[Observation]:
        """The recorded answers.  Raises Strayed."""
        wanted = {(watch.actor, watch.address) for watch in watches}
        # A program that ran ahead was answered with what it watched later, too.
        return [
            replace(seen, watched=tuple(each for each in seen.watched if each[0] in wanted))
            for seen in map(self._answer, operations)
        ]

    def _answer(self, operation: Operation) -> Observation:
        again, self._again = self._again, False
        while not again and not self.expired:
            # The kernel was asked more often than the model asks.
            self._at += 1
        if self._at == len(self.answers) or self.answers[self._at].operation != operation:
            raise Strayed
        self._at += 1
        return self.answers[self._at - 1].seen

    @property
    def expired(self) -> bool:
        """Whether the kernel was not asked once more."""
        return self._at == len(self.answers) or not self.answers[self._at].again

    def remaining(self) -> float:
        """No time passes."""
        return 0.0

    def deadline(self, seconds: float, what: str) -> Deadline:
        """The repetitions that are left."""
        return self

    def pause(self, deadline: Deadline) -> None:
        """The next operation is a repetition."""
        self._again = True


def replayed(variant: Variant, pickled: bytes, profile: Profile) -> Lockstep:
    """Run a variant against its recording.  Raises Strayed, and whatever the case raises."""
    recording: Recording = pickle.loads(pickled)
    lockstep = Lockstep(Model(profile), Replayed(recording.answers))
    lockstep.model.world.table.multi_id = recording.multi_id
    variant.function(UserEvents(lockstep, recording.serial), **variant.arguments)
    lockstep.run()
    return lockstep


@cache
def variants_by_id() -> Mapping[str, Variant]:
    """All variants."""
    return {each.id: each for each in all_variants()}


class Noticed(Struct, frozen=True):
    """How the first case ended that a mutant does not pass ("" if all do), and what strayed."""

    how: str
    where: tuple[str, str] = ("", "")
    tried: int = 0
    strayed: tuple[tuple[str, str], ...] = ()


def noticed(
    recordings: Mapping[str, Any],
    chosen: Iterable[tuple[str, str]],
    switch: str = "",
    limit_s: float = inf,
) -> Noticed:
    """Replay cases, named by kernel and id, with a switch flipped, until one does not pass.

    No case starts after ``limit_s`` of CPU time; to import the cases does not count.
    """
    variants = variants_by_id()
    profiles = {kernel: _profile(each, switch) for kernel, each in recordings.items()}
    strayed, tried = [], 0
    began = time.process_time()
    for kernel, case_id in chosen:
        variant, profile = variants[case_id], profiles[kernel]
        if not variant.case.applies(profile):
            continue
        if time.process_time() - began > limit_s:
            break
        tried += 1
        how = _ending(variant, recordings[kernel].cases[case_id], profile)
        if how == Strayed.__name__:
            strayed.append((kernel, case_id))
        elif how:
            return Noticed(how, (kernel, case_id), tried, tuple(strayed))
    return Noticed("", tried=tried, strayed=tuple(strayed))


def _ending(variant: Variant, pickled: bytes, profile: Profile) -> str:
    """How a case does not pass: "differs", or the name of what it raised; "" if it passes."""
    signal.setitimer(signal.ITIMER_VIRTUAL, CASE_S)
    try:
        return "differs" if replayed(variant, pickled, profile).mismatches else ""
    except AssertionError:
        return "differs"
    except Exception as error:
        return type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _profile(recordings: Any, switch: str) -> Profile:
    profile = profile_for(recordings.abi, base=recordings.release)
    return replace(profile, switches=profile.switches ^ {switch} if switch else profile.switches)


def survey(
    recordings: Mapping[str, Any], enter: Callable[[str], None]
) -> tuple[dict[tuple[str, str], frozenset[str]], dict[str, list[str]]]:
    """Replay all cases: the switches that each asked for; by kernel, those that do not pass.

    ``enter`` is called with "kernel id" before each.
    """
    variants = variants_by_id()
    asked, wrong = {}, dict[str, list[str]]()
    for kernel, each in recordings.items():
        for case_id, pickled in each.cases.items():
            profile = AdaptedProfile.of(_profile(each, ""), frozenset(BY_NAME))
            enter(f"{kernel} {case_id}")
            how = _ending(variants[case_id], pickled, profile)
            asked[kernel, case_id] = frozenset(profile.used)
            if how:
                wrong.setdefault(kernel, []).append(f"{case_id}: {how}")
    return asked, wrong
