"""Races: tasks that run at the same time, and the tally of their answers.

A race is one operation.  Its data is one line per step of each track: how often each answer came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from errno import errorcode
from itertools import count

from msgspec import Struct

from conformance.ops.calls import Call
from conformance.ops.operation import Operation, Reply
from conformance.ops.tasks import Clone

# The agent counts four different answers of a step; all others together have this name.
OTHERS = "others"
# Answer to count: a value in decimal digits, or the name of an error.
Tally = Mapping[str, int]


class Track(Struct, frozen=True):
    """What one task does: all its steps in order, ``passes`` times.

    A step is a system call or ``Add``.  With one pass it may also be ``Clone`` and, at the end,
    ``Exit`` or ``ExitTask``.
    """

    actor: str
    steps: tuple[Operation, ...]
    passes: int = 1

    def c_text(self) -> str:
        """The loop in C."""
        steps = " ".join(f"{step.c_text()};" for step in self.steps)
        return f"for (int i = 0; i < {self.passes}; i++) {{ {steps} }}"

    def call(self) -> Call:
        """Actor, passes and one call for each step.  Raises ValueError for a step of several."""
        calls = [call for step in self.steps for call in step.calls()]
        if len(calls) != len(self.steps):
            raise ValueError(f"a step of a race must be one call: {self.steps!r:.200}")
        return [self.actor, self.passes, calls]

    def renamed(self, name: Callable[[str], str]) -> Track:
        """The track with actors renamed."""
        return Track(name(self.actor), tuple(s.renamed(name) for s in self.steps), self.passes)


class Race(Operation, frozen=True):
    """Tasks of one driver, ``actor`` among them, start their tracks at the same moment.

    The race ends when all tracks have ended.
    """

    tracks: tuple[Track, ...]

    def c_text(self) -> str:
        first, *others = self.tracks
        loops = [first.c_text(), *(f"{each.actor}: {each.c_text()}" for each in others)]
        return " || ".join(loops)

    def calls(self) -> list[Call]:
        made = [step.child for step in steps_of(self) if isinstance(step, Clone)]
        ids: list[Call] = [["via", child, ["tid"]] for child in made]
        return [["race", [track.call() for track in self.tracks]], *ids]

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        return 0, decode_tallies(self, replies[0].data or b"").encode()

    def renamed(self, name: Callable[[str], str]) -> Race:
        return Race(name(self.actor), tuple(track.renamed(name) for track in self.tracks))


class Add(Operation, frozen=True):
    """Add to the four bytes at ``address`` atomically, ``times`` times; only a step of a race."""

    address: int
    amount: int
    times: int = 1

    def c_text(self) -> str:
        added = f"__atomic_fetch_add((int *){self.address:#x}, {self.amount}, __ATOMIC_SEQ_CST)"
        return f"for (int n = 0; n < {self.times}; n++) {added}"

    def calls(self) -> list[Call]:
        return [["add", self.address, self.amount, self.times]]


def steps_of(operation: Operation) -> Iterable[Operation]:
    """The operations of a race, or the operation itself."""
    if not isinstance(operation, Race):
        return (operation,)
    return tuple(step for track in operation.tracks for step in track.steps)


def format_tallies(race: Race, tallies: Iterable[Iterable[Tally]]) -> str:
    """The answers as text: ``p2.0: 0 *998, EBUSY *2``, numbers before names."""
    return "".join(
        f"{track.actor}.{number}: {_format_tally(tally)}\n"
        for track, steps in zip(race.tracks, tallies, strict=True)
        for number, (tally, _) in enumerate(zip(steps, track.steps, strict=True))
    )


def format_allowed(race: Race, answers: Iterable[Iterable[Iterable[str]]]) -> str:
    """The allowed answers as text: ``p2.0: 0|EBUSY *1000``."""
    return "".join(
        f"{track.actor}.{number}: {'|'.join(sorted(may))} *{track.passes}\n"
        for track, steps in zip(race.tracks, answers, strict=True)
        for number, may in enumerate(steps)
    )


def parse_tallies(text: str) -> list[list[Tally]]:
    """The tallies in a text of ``format_tallies``."""
    found: dict[str, list[Tally]] = {}
    for line in text.splitlines():
        step, _, shown = line.partition(": ")
        pairs = (each.rpartition(" *") for each in shown.split(", "))
        found.setdefault(step.rpartition(".")[0], []).append(
            {answer: int(times) for answer, _, times in pairs}
        )
    return list(found.values())


def conforms(may: str, text: str) -> bool:
    """Whether all answers are allowed ones, as many as there were passes."""
    # Only "\n" ends a line.
    *allowed_lines, rest = may.split("\n")
    *lines, other_rest = text.split("\n")
    if (len(allowed_lines), rest) != (len(lines), other_rest):
        return False
    for one, other in zip(allowed_lines, lines, strict=True):
        (step, _, answers), (same, _, shown) = one.partition(": "), other.partition(": ")
        which, _, times = answers.rpartition(" *")
        ((seen,),) = parse_tallies(f"{same}: {shown}\n")
        if step != same or sum(seen.values()) != int(times):
            return False
        if not set(seen) <= set(which.split("|")):
            return False
    return True


def decode_tallies(race: Race, raw: bytes) -> str:
    """The tallies from the agent as text, "" if malformed.

    The input is JSON: for each track and step, pairs (count, value), with value null for all
    others.
    """
    try:
        return format_tallies(
            race,
            [
                [{_answer(value): int(n) for n, value in step} for step in each]
                for each in json.loads(raw)
            ],
        )
    except (ValueError, TypeError, RecursionError):
        return ""


def _answer(value: object) -> str:
    if value is None:
        return OTHERS
    if not isinstance(value, int):
        raise ValueError(f"not the result of a system call: {value!r:.40}")
    return errorcode.get(-value, str(value)) if -4096 < value < 0 else str(value)


def _format_tally(tally: Tally) -> str:
    ordered = sorted(tally, key=lambda answer: (not answer.isdigit(), len(answer), answer))
    return ", ".join(f"{answer} *{tally[answer]}" for answer in ordered)


def unroll(race: Race, max_passes: int) -> list[list[tuple[int, Operation]]]:
    """Numbered steps of each track, repeated for at most ``max_passes`` passes."""
    return [
        [pair for _ in range(min(track.passes, max_passes)) for pair in zip(count(), track.steps)]
        for track in race.tracks
    ]
