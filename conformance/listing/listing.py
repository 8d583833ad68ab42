"""A program as lines of text: arguments fused into the calls that read them, furniture left out.

A line has the number of its operation; operations between two lines are furniture, stores that the
next line shows, or the load of what its call returned.  A differing operation has a line, or is
such a load.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from conformance import ops
from conformance.abi.uapi import Layout
from conformance.client.addresses import GUARD_LENGTH, is_guarded
from conformance.client.lockstep import Step
from conformance.listing.calls import Calls
from conformance.listing.memory import Memory
from conformance.listing.names import (
    Names,
    is_fresh_word,
    is_furniture,
    plain_names,
    without_guards,
)
from conformance.listing.structures import filled, reg_layout
from conformance.model.answers import UNREADABLE, Difference
from conformance.ops import race, tasks
from conformance.ops.allocations import Unfreed
from conformance.ops.c_text import literal
from conformance.results.case_result import Mismatch
from host.text import counted

_STORES = (ops.Store, ops.StoreNumber, ops.StoreDescriptor)
# Calls whose result is in the line already, or says nothing if they succeed.
_SILENT = (
    *(ops.Open, ops.Mmap, ops.Mremap, ops.Dup, ops.Fork, ops.Spawn, ops.PerfEventOpen),
    *(ops.MemoryFile, ops.WriteFile, ops.WritePid, ops.Exit),
    *(tasks.Clone, tasks.Exec, tasks.ExitTask, tasks.Die),
)
# What the descriptor of a call is called, if the call does not open a path.
_DESCRIPTORS: Mapping[type[Any], str] = {
    ops.PerfEventOpen: "perf_fd",
    ops.MemoryFile: "memfd",
    ops.Bpf: "bpf_fd",
}
_PAGE = re.compile(r"\bpage\d*\b")
# Stands for the answer of a call from which the kernel did not return.
_NO_ANSWER = "?"
# A wait that took longer is mentioned; seconds.
_NOTABLE_S = 0.5


class _Line(Struct):
    step: Step
    text: str
    remark: str = ""
    # A store that succeeded as it had to: shown only if no call reads it.
    store: bool = False

    def __str__(self) -> str:
        return f"{self.step.number}. {self.step.operation.actor}: {self.text}{self.remark}"


class Listing:
    """The text of one program: all its steps, and the operations that got no answer."""

    def __init__(self, steps: Sequence[Step], lost: Sequence[ops.Operation] = ()) -> None:
        self.names = Names()
        self._memory = Memory()
        self._calls = Calls(self._memory, self.names)
        self._lines: list[_Line] = []
        # Loads of a struct user_reg that a call has filled in, by step.
        self._returned: dict[int, Layout] = {}
        for step in steps:
            self._add(step)
        for number, operation in enumerate(lost, len(steps) + 1):
            self._add(Step(number, operation, (), ops.Observation(-1, _NO_ANSWER), ()))

    @property
    def lines(self) -> list[str]:
        """``14. p1: call(arguments) = result`` for each step that needs one."""
        read = self._memory.shown
        shown = [each for each in self._lines if not (each.store and each.step.number in read)]
        texts = [str(each) for each in shown]
        used = Counter(name for text in texts for name in set(_PAGE.findall(text)))
        return [
            text
            for line, text in zip(shown, texts, strict=True)
            if line.step.differences or not _is_only_mapped(line, used)
        ]

    def mismatch(self, step: Step, found: Difference) -> Mismatch:
        """A difference with the names of the lines; memory without equal guards around it."""
        kind, _, place = found.field.partition(" ")
        if kind == "memory":
            return self._memory_mismatch(step, place, found)
        if kind == "data" and (returned := self._returned.get(step.number)) is not None:
            sides = [side for side in step.allowed if side.data is not None]
            allowed = [filled(returned, side.data or b"") for side in sides[:1]]
            observed = filled(returned, step.seen.data or b"")
            for name, value in observed.items():
                if allowed and allowed[0][name] != value:
                    return Mismatch(step.number, name, str(allowed[0][name]), str(value))
        texts = (plain_names(text) for text in (found.allowed, found.observed))
        field = "unfreed" if isinstance(step.operation, Unfreed) else found.field
        return Mismatch(step.number, field, *texts)

    def _memory_mismatch(self, step: Step, place: str, found: Difference) -> Mismatch:
        actor, _, number = place.partition(" ")
        watched, texts = int(number, 16), [found.allowed, found.observed]
        margin = GUARD_LENGTH if is_guarded(watched) else 0
        name = self.names.memory(watched + margin)
        if margin:
            sides = [without_guards(watched, _bytes_of(text)) for text in texts]
            if all(address > watched for address, _ in sides):
                texts = [content.hex(" ") for _, content in sides]
            else:
                name += f" and {margin} bytes on both sides"
        return Mismatch(step.number, f"memory {actor} {name}", *texts)

    def _add(self, step: Step) -> None:
        operation = step.operation
        if step.seen.ok and is_furniture(operation) and not step.differences:
            return
        if self._is_returned(step):
            return
        if is_fresh_word(operation) and not step.differences:
            self._after(operation, step)
            return
        self._before(operation)
        if isinstance(operation, race.Race):
            text = self._calls.racing(operation, step.seen.text)
        else:
            text = self._calls.text(operation)
        stores = isinstance(operation, _STORES) and step.seen.ok and not step.differences
        self._lines.append(_Line(step, text + self._result(step), _waited(step), stores))
        self._after(operation, step)

    def _is_returned(self, step: Step) -> bool:
        """Whether a load is of the struct user_reg that the call before has filled in."""
        load, line = step.operation, self._lines[-1] if self._lines else None
        if line is None or not isinstance(load, ops.Load):
            return False
        call, place = line.step.operation, (load.actor, load.address)
        if not isinstance(call, ops.Ioctl) or (call.actor, call.argument) != place:
            return False
        layout = reg_layout(self._memory, load.actor, load.address)
        if layout is None or layout.size != len(step.seen.data or b""):
            return False
        self._returned[step.number] = layout
        if line.step.seen.ok and step.seen.data:
            found = filled(layout, step.seen.data).items()
            line.remark += f"  /* {', '.join(f'{name} {value}' for name, value in found)} */"
        return True

    def _before(self, operation: ops.Operation) -> None:
        """Name what the text of the operation itself assigns."""
        for each in race.steps_of(operation):
            actor = each.actor
            if isinstance(each, ops.Open):
                self.names.opened(actor, each.slot, path=each.path)
            elif isinstance(each, ops.PerfEventOpen | ops.MemoryFile | ops.Bpf):
                if each.slot is not None:
                    self.names.opened(actor, each.slot, kind=_DESCRIPTORS[type(each)])
            elif isinstance(each, ops.Socketpair):
                self.names.opened(actor, each.slot, kind="socket")
                self.names.opened(actor, each.other_slot, kind="socket")
            elif isinstance(each, ops.ReceiveDescriptor):
                self.names.opened(actor, each.new_slot, kind="received_fd")
            elif isinstance(each, ops.Dup):
                kind = self.names.descriptor(actor, each.slot).rstrip("0123456789")
                self.names.opened(actor, each.new_slot, kind=kind)
            elif isinstance(each, ops.Mmap) and not is_furniture(each):
                file = "" if each.slot is None else self.names.descriptor(actor, each.slot)
                kind = "page" if not file else f"{file.partition('_')[0]}_page"
                self.names.mapped(each.address, each.length, kind)
            elif isinstance(each, ops.Mremap):
                self.names.mapped(each.new_address, each.length)

    def _after(self, operation: ops.Operation, step: Step) -> None:
        """Follow what the operation does to memory and descriptors."""
        actor = operation.actor
        if isinstance(operation, ops.Store) and step.seen.ok:
            self._memory.store(actor, operation.address, operation.data, step.number)
        elif isinstance(operation, ops.StoreNumber) and step.seen.ok:
            name = f"number in {operation.path}"
            self._memory.store(actor, operation.address, bytes(8), step.number)
            self._memory.label(actor, operation.address, name, step.number)
        for each in race.steps_of(operation):
            if isinstance(each, (ops.Fork, tasks.Clone)):
                shared = isinstance(each, tasks.Clone) and bool(each.flags & tasks.CLONE_VM)
                self._memory.copy(each.actor, each.child, shared=shared)
                self.names.inherit(each.actor, each.child)

    def _result(self, step: Step) -> str:
        operation, seen = step.operation, step.seen
        if seen.errno == _NO_ANSWER:
            return " = ?"
        if seen.errno:
            return f" = -1 {seen.errno}"
        if isinstance(operation, (race.Race, *_STORES, *_SILENT)):
            return ""
        if isinstance(operation, ops.Load) and seen.data and len(seen.data) in (1, 2, 4, 8):
            return f" == {int.from_bytes(seen.data, 'little'):#x}"
        if seen.data is None:
            return f" = {seen.value}"
        data = _summary(seen.data)
        if isinstance(operation, (ops.ReadFile, ops.Load, ops.ReadRing)):
            return f" = {self.names.in_text(operation.actor, data)}"
        return f" = {seen.value} {self.names.in_text(operation.actor, data)}"


def _is_only_mapped(line: _Line, used: Mapping[str, int]) -> bool:
    """Whether a line maps memory that nothing but arguments is stored in."""
    operation = line.step.operation
    anonymous = isinstance(operation, ops.Mmap) and operation.slot is None and line.step.seen.ok
    return anonymous and used[line.text.partition(" ")[0]] == 1


def _bytes_of(text: str) -> bytes:
    """The bytes of a difference in memory, none if it was not readable."""
    return b"" if text == UNREADABLE else bytes.fromhex(text)


def _summary(data: bytes) -> str:
    first, newline, rest = data.partition(b"\n")
    more = rest.count(b"\n") + bool(rest.rpartition(b"\n")[2])
    if newline and more and len(data) > 48:
        return f"{literal(first)} and {counted(more, 'more line')}"
    return literal(data)


def _waited(step: Step) -> str:
    waited = step.waited_s or 0.0
    return f"  /* repeated for {waited:.1f} s */" if waited > _NOTABLE_S else ""
