"""The call of one operation as text, with what its pointers point to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat, zip_longest
from typing import Any

from conformance import ops
from conformance.abi import uapi
from conformance.listing.memory import Memory
from conformance.listing.names import Names, without_guards
from conformance.listing.structures import Structures
from conformance.ops import compat, race, tasks
from conformance.ops.c_text import request

_NUMBER = 0xFF
_REG, _DEL, _UNREG = (
    number & _NUMBER for number in (uapi.DIAG_IOCSREG, uapi.DIAG_IOCSDEL, uapi.DIAG_IOCSUNREG)
)
_TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
_MAGIC = uapi.DIAG_IOCSREG >> 8 & 0xFF
# Requests of the first version take a string: its numbers have no _IOC_READ.
_READ = 1 << 31


class Calls:
    """Texts of operations, by the memory and names so far."""

    def __init__(self, memory: Memory, names: Names) -> None:
        self._memory = memory
        self._names = names

    def racing(self, operation: race.Race, answers: str) -> str:
        """A race, with the answers of each step as in its data."""
        tallies = race.parse_tallies(answers)
        tracks = [
            self._track(operation, track, steps)
            for track, steps in zip(operation.tracks, tallies or repeat(()), strict=False)
        ]
        return " || ".join(tracks)

    def text(self, operation: ops.Operation) -> str:
        """The call, without actor and result."""
        text, described = "", _DESCRIBED.get(type(operation))
        if described is not None:
            structures = Structures(self._memory, self._names, operation.actor)
            text = described(operation, structures, self._names)
        return self._names.in_text(operation.actor, text or operation.c_text())

    def _track(self, whole: race.Race, track: race.Track, tallies: Sequence[race.Tally]) -> str:
        texts = [
            f"{self.text(step)}{_answers(step, tally, track.passes)}"
            for step, tally in zip_longest(track.steps, tallies)
        ]
        steps = "; ".join(texts)
        loop = f"{track.passes} times {{ {steps} }}" if track.passes > 1 else f"{{ {steps} }}"
        return loop if track.actor == whole.actor else f"{track.actor}: {loop}"


def _answers(step: ops.Operation, tally: race.Tally | None, passes: int) -> str:
    """What a step of a race returned: its one answer, or how often each came."""
    if not tally:
        return ""
    shown = {f"-1 {each}" if each[0].isalpha() else each: n for each, n in tally.items()}
    if passes == 1:
        made = isinstance(step, (tasks.Clone, race.Add)) and shown.keys() == {"0"}
        return "" if made else f" = {next(iter(shown))}"
    return f" /* {', '.join(f'{each}: {number} times' for each, number in shown.items())} */"


def _clone(call: tasks.Clone, structures: Structures, names: Names) -> str:
    """fork() where it is one; the stack of a task in shared memory is the harness's."""
    if not call.flags:
        return f"{call.child} = fork()"
    return call.c_text().replace(", 0, 0, 0, 0)", ")")


def _ioctl(call: ops.Ioctl | compat.Ioctl32, structures: Structures, names: Names) -> str:
    address, number = call.argument, call.request & _NUMBER
    argument = names.pointer(address)
    if call.request >> 8 & 0xFF == _MAGIC:
        if number == _REG and call.request & _READ:
            argument = structures.user_reg(address)
        elif number in (_REG, _DEL):
            argument = structures.string(address)
        elif number == _UNREG:
            argument = structures.user_unreg(address)
    entry, _, _ = call.c_text().rpartition("ioctl(")
    return f"{entry}ioctl(fd{call.slot}, {request(call.request)}, {argument})"


def _write(call: Any, structures: Structures, names: Names) -> str:
    data = names.is_data(call.actor, call.slot)
    return _with_argument(call, structures.payload(call.address, call.count, data=data))


def _writev(call: Any, structures: Structures, names: Names) -> str:
    data = names.is_data(call.actor, call.slot)
    return _with_argument(call, structures.vector(call.address, call.count, data=data))


def _submit(call: ops.SubmitWrite, structures: Structures, names: Names) -> str:
    return (_writev if call.vector else _write)(call, structures, names)


def _perf_event_open(call: ops.PerfEventOpen, structures: Structures, names: Names) -> str:
    return _with_argument(call, structures.perf_event_attr(call.address))


def _mmap(call: ops.Mmap, structures: Structures, names: Names) -> str:
    _, _, arguments = call.c_text().partition(", ")
    text = f"mmap(NULL, {arguments.replace('MAP_FIXED_NOREPLACE | ', '')}"
    return f"{names.pointer(call.address)} = {text}"


def _store(call: ops.Store, structures: Structures, names: Names) -> str:
    address, data = without_guards(call.address, call.data)
    pointer = names.pointer(address)
    if pointer.startswith("&word") and len(data) in (4, 8):
        return f"{pointer[1:]} = {int.from_bytes(data, 'little'):#x}"
    return call.c_text()


def _load(call: ops.Load, structures: Structures, names: Names) -> str:
    kind, pointer = _TYPES.get(call.length), names.pointer(call.address)
    if kind is None:
        return call.c_text()
    if pointer.startswith("&"):
        return pointer[1:]
    return f"*({kind} *){f'({pointer})' if ' ' in pointer else pointer}"


def _with_argument(call: Any, argument: str) -> str:
    """The C text of a call whose address is replaced."""
    pointer = rf"(?:\([\w ]+ \*\))?{call.address:#x}\b"
    text, number = re.subn(pointer, lambda _: argument, call.c_text(), count=1)
    assert number, call
    return text


_Describe = Callable[[Any, Structures, Names], str]
_DESCRIBED: Mapping[type[ops.Operation], _Describe] = {
    tasks.Clone: _clone,
    ops.Ioctl: _ioctl,
    compat.Ioctl32: _ioctl,
    ops.Write: _write,
    ops.Pwrite: _write,
    compat.Write32: _write,
    ops.Writev: _writev,
    ops.Pwritev: _writev,
    ops.SubmitWrite: _submit,
    ops.PerfEventOpen: _perf_event_open,
    ops.Mmap: _mmap,
    ops.Store: _store,
    ops.Load: _load,
}
