"""Races: the loops of their tracks, with raw system calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance import ops
from conformance.ops import race, tasks
from conformance.ops.calls import NUMBERS, Call
from conformance.ops.operation import Operation
from conformance.repro import literals as c
from conformance.repro.calls import Names, expression
from conformance.repro.errors import NotExpressible
from conformance.repro.scopes import Descriptors

_NAMES = {number: name for name, number in NUMBERS.items()}
# The tallies of struct shared in c/lockstep.c.
_MOST_TRACKS, _MOST_STEPS = 8, 64


class Races:
    """Writes races.  Raises NotExpressible."""

    def __init__(self, descriptors: Descriptors, names: Names) -> None:
        self._descriptors = descriptors
        self._names = names

    def lines(self, number: int, operation: race.Race) -> Iterator[str]:
        """The statements of a race; ``number`` is that of its step."""
        tracks = operation.tracks
        if len(tracks) > _MOST_TRACKS or any(len(each.steps) > _MOST_STEPS for each in tracks):
            raise NotExpressible("a race of too many processes or calls")
        yield f"begin_race(me, {number});"
        leavers = []
        for place, track in enumerate(tracks):
            name = self._names[track.actor]
            *_, last = track.steps
            leaves = isinstance(last, (ops.Exit, tasks.ExitTask))
            leavers.append(name if leaves else "0")
            yield f"if (enter_race(me, from, {number}, {name}, {len(tracks)})) {{"
            yield f"\tfor (int pass = 0; pass < {track.passes}; pass++) {{"
            for at, step in enumerate(track.steps):
                yield f"\t\t{self._step(place, at, step)};"
            yield "\t}"
            yield from () if leaves else ("\tleave_race();",)
            yield "}"
        listed = ", ".join(
            f'{{ "{track.actor}", {len(track.steps)}, {leaver} }}'
            for track, leaver in zip(tracks, leavers, strict=True)
        )
        yield f"end_race(me, {len(tracks)}, (const struct track[]){{ {listed} }});"

    def _step(self, track: int, at: int, step: Operation) -> str:
        place = f"{track}, {at}"
        if isinstance(step, race.Add):
            where = f"(int *)({c.address(step.address)})"
            return f"result({place}, add({where}, {step.amount}, {step.times}))"
        if isinstance(step, tasks.Clone):
            return f"result({place}, made({expression(step, self._descriptors, self._names)}))"
        if isinstance(step, (ops.Exit, tasks.ExitTask)):
            number = "SYS_exit" if isinstance(step, tasks.ExitTask) else "SYS_exit_group"
            return f"raw_exit({place}, {number}, {step.status})"
        (call,) = step.calls()
        return f"result({place}, {self._raw(step.actor, call)})"

    def _raw(self, actor: str, call: Call) -> str:
        form, number, arguments, slot = call
        if form != "sys" or not isinstance(arguments, list):
            raise NotExpressible(f"a race of the call {form}")
        shown = [self._argument(actor, each) for each in arguments]
        text = ", ".join([f"SYS_{_NAMES[int(str(number))]}", *shown, *["0"] * (6 - len(shown))])
        if slot is None:
            return f"raw({text})"
        return f"kept(&{self._descriptors.fill(actor, int(str(slot)))}, raw({text}))"

    def _argument(self, actor: str, argument: int | Mapping[str, object]) -> str:
        if isinstance(argument, int):
            return f"(long)({c.address(argument)})" if argument >= 1 << 32 else str(argument)
        ((kind, content),) = argument.items()
        if kind == "fd":
            return self._descriptors.get(actor, int(str(content)))
        if kind == "in":
            return f"(long){c.string(bytes.fromhex(str(content)).removesuffix(bytes(1)))}"
        return "(long)buffer"
