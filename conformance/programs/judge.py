"""Judge a recorded program: every call in lock step with the model, as far as it can be."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from conformance import ops
from conformance.abi import uapi
from conformance.abi.profile import USER_REG_OF, Profile
from conformance.client.lockstep import Step
from conformance.client.tracefs import ROOT
from conformance.model.answers import Difference
from conformance.model.errors import ModelError
from conformance.model.state.events import Event
from conformance.ops.c_text import request
from conformance.programs import calls, doubts, observed, operations, records, subjects
from conformance.programs.calls import Descriptors, NotJudged
from conformance.programs.followed import LISTENER, Followed
from conformance.programs.judgement import Judgement, SeenEvent, Verdict, judged_call
from conformance.programs.observed import Watched
from vm.recorder.recording import Call, Details, Entry, Group

_INSTANCE = f"{ROOT}/instances/{records.INSTANCE}"
# Errors about details that are missing or cut off.
_MALFORMED = (LookupError, ValueError, struct.error)
# Bytes of memory that are kept for the listing.
_SHOWN = 4096
_SIZE_MEMBER = 4
_REG_SIZES = frozenset(layout.size for layout in USER_REG_OF.values())


class Judge:
    """The model with the tasks of a program, and the judgement so far."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._followed = Followed(profile)
        self._model = self._followed.model
        self._judgement = Judgement(
            not_judged=self._followed.not_judged, remarks=self._followed.remarks
        )
        self._numbers = itertools.count(1)
        self._listening = False
        # Events that the listener has found, by id.
        self._names: dict[int, str] = {}
        self._program: int | None = None

    def feed(self, groups: Iterable[Group]) -> Judgement:
        """Judge the next groups of a recording; the judgement so far."""
        for group in groups:
            if isinstance(group, Call):
                self._call(group)
            else:
                self._entry(group)
        return self._judgement

    def _entry(self, entry: Entry) -> None:
        details, remarks = entry.details, self._judgement.remarks
        match entry.kind, entry.numbers:
            case "listening", (number,):
                self._listen(entry.word, number)
            case "start", (tid,):
                self._program = tid
                self._followed.start(tid)
            case "fork", (tid, child, tgid, flags):
                actor = self._followed.fork(tid, child, tgid, flags)
                if actor is not None:
                    observed.take_over(self._model, actor, details)
            case "exec", (tid, former):
                self._followed.execute(tid, former, details)
            case "exiting", (tid,) if tid in self._followed.actors:
                actor = self._followed.actors[tid]
                if count := observed.unexplained_words(self._model, actor, details):
                    remarks["the program changed a registered bit of an enable word"] += count
            case "end", (tid, status):
                self._followed.end(tid)
                if tid == self._program:
                    self._judgement.status = status
            case "overlap", _:
                remarks["a call did not return in time, and others overtook it"] += 1
            case "stranger", _:
                remarks["a task whose creation was not seen is not judged"] += 1
                self._followed.lose_events("the calls of a task whose creation was not seen")
            case "done", ():
                self._judgement.complete = True
                self._remark_unseen(records.read_back(details, self._names))

    def _listen(self, kind: str, number: int) -> None:
        self._listening = number == 0
        if number:
            self._judgement.remarks[f"no listener: {ops.error_name(number)}"] += 1
        elif kind == "ftrace":
            self._followed.perform(ops.MakeDirectory(LISTENER, _INSTANCE))

    # Calls

    def _call(self, call: Call) -> None:
        actor = self._followed.actors.get(call.tid)
        if actor is None:
            return
        if calls.unshares_files(call):
            self._followed.unshare(actor)
        match calls.name_of(call):
            case "sendmsg" | "sendmmsg":
                self._followed.send(call, actor)
            case _ if calls.was_restarted(call):
                pass
            case "recvmsg" | "recvmmsg":
                self._followed.receive(call, actor)
            case "pidfd_getfd":
                self._followed.take(call)
            case "unshare":
                pass
            case "prctl" | "seccomp":
                doubts.add_filter(self._followed, call)
            case "io_uring_setup" | "io_setup" | "perf_event_open" as name:
                if call.result is None or call.result >= 0:
                    doubts.lose_sight(self._followed, name)
            case _:
                self._translate(call, actor)

    def _translate(self, call: Call, actor: str) -> None:
        known = self._followed.descriptors(actor)
        try:
            program = operations.operations_of(call, actor, known)
            if program:
                self._judge(call, actor, program, known)
        except (NotJudged, ModelError) as why:
            foreign = calls.is_foreign(call, known)
            counts = self._judgement.foreign if foreign else self._judgement.not_judged
            counts[f"{calls.failure_of(call)}{why}"] += 1
            self._not_taken_over(call, actor, known)
        except _MALFORMED as error:
            reason = f"{calls.name_of(call)}, recorded incompletely ({error!r})"
            self._judgement.not_judged[reason] += 1
            self._not_taken_over(call, actor, known)

    def _not_taken_over(self, call: Call, actor: str, known: Descriptors) -> None:
        if call.result is None or call.result >= 0:
            doubts.not_taken_over(self._followed, call, actor, known)
        self._model.observe(records.take_records)

    def _judge(
        self, call: Call, actor: str, program: Sequence[ops.Operation], known: Descriptors
    ) -> None:
        if call.result is None:
            raise NotJudged(f"{calls.name_of(call)} that did not return")
        for each in program[:-1]:
            self._followed.perform(each)
        operation = program[-1]
        observed.take_over(self._model, actor, call.before)
        self._followed.become(actor, call.before.credentials)
        if isinstance(operation, ops.Mmap) and operation.address:
            observed.unmap(self._model, operation)
        watched: list[Watched] = []
        if isinstance(operation, ops.Ioctl):
            watched = observed.watched(self._model, call, operation)
        seen = self._seen(call, operation, watched)
        doubts.check_environment(self._followed, call, operation, seen)
        allowed = self._followed.step(operation, [each.watch for each in watched])
        found = self._model.narrow(operation, seen)
        found += self._listened(call, watched)
        found += self._compare_records(call.after)
        step = Step(next(self._numbers), operation, tuple(allowed), seen, tuple(found))
        judged = judged_call(_name(call, operation), (*_stores(call, operation), step), allowed)
        if calls.is_foreign(call, known, program):
            if found:
                doubts.not_taken_over(self._followed, call, actor, known)
            self._judgement.foreign[f"{judged.name} of {calls.files_of(call)}"] += 1
            return
        if found:
            doubts.check_events(self._followed, call, step)
        about = subjects.subjects_of(call, operation, self._profile)
        self._judgement.judged += 1
        if judged.verdict is not Verdict.ALLOWED or not subjects.is_write(operation):
            self._judgement.calls.append(replace(judged, subjects=about))
        if seen.ok:
            self._count(call, actor, operation)

    def _seen(
        self, call: Call, operation: ops.Operation, watched: Sequence[Watched]
    ) -> ops.Observation:
        memory = tuple(
            ((each.watch.actor, each.watch.address), each.seen(call.after.memory))
            for each in watched
        )
        return replace(operations.observation(call, operation), watched=memory)

    # The listener

    def _listened(self, call: Call, watched: Sequence[Watched]) -> list[Difference]:
        """What the listener did right after a registration, and the enable word then."""
        details = call.after
        self._names |= {each.id: each.name for each in details.events}
        found = []
        for each in details.enabled:
            path = f"{_INSTANCE}/events/{each.system}/enable"
            enable = ops.WriteFile(LISTENER, path, b"1", os.O_WRONLY)
            seen = ops.Observation(1)
            if each.errno:
                seen = ops.Observation(-1, ops.error_name(each.errno))
            self._followed.step(enable)
            found += self._model.narrow(enable, seen)
        systems = {each.id: each.system for each in details.events}
        for attached in details.attached:
            if not attached.errno:
                system, name = systems[attached.id], self._names[attached.id]
                self._model.observe(partial(records.attach_perf, system=system, name=name))
        if details.enabled_memory:
            for word in watched:
                found += self._enabled(details, word) if word.bits is not None else []
        return found

    def _enabled(self, details: Details, word: Watched) -> list[Difference]:
        """Compare an enable word after its event was enabled."""
        watch = word.watch
        seen = word.seen(details.enabled_memory)
        look = ops.Load(watch.actor, watch.address, watch.length)
        self._followed.step(look, [watch])
        key = (watch.actor, watch.address)
        differing = self._model.narrow(
            look, ops.Observation(watch.length, "", seen, watched=((key, seen),))
        )
        return [
            replace(each, field=f"{each.field} after the listener has enabled the event")
            for each in differing
            if each.field != "data"
        ]

    def _compare_records(self, details: Details) -> list[Difference]:
        """Compare what the listener read back after a call."""
        if not self._listening:
            return []
        found = records.read_back(details, self._names)
        allowed = self._model.observe(records.take_records)
        if self._followed.doubt:
            found, others = records.without_unseen(allowed, found)
            self._remark_unseen(others)
        self._judgement.records += len(found)
        for each in found:
            if each.event in self._judgement.events:
                self._judgement.events[each.event].records += 1
        return records.compare(allowed, found, samples=bool(details.samples))

    def _remark_unseen(self, found: Iterable[records.Record]) -> None:
        for each in found:
            origin = f"a record of {each.event or 'unknown origin'} that no recorded call wrote"
            self._judgement.remarks[origin] += 1

    # Events

    def _count(self, call: Call, actor: str, operation: ops.Operation) -> None:
        file = self._model.world.process(actor).slots.get(call.arguments[0])
        if file is None or not file.events:
            return
        if isinstance(operation, ops.Ioctl) and operation.request == uapi.DIAG_IOCSREG:
            index = subjects.registered_index(call, operation, self._profile)
            event = self._event(file.events, index)
            if event is not None:
                self._seen_event(event, index).registered += 1
        elif subjects.is_write(operation):
            event = self._event(file.events, subjects.written_index(call, operation))
            if event is not None and event.tracepoint in self._judgement.events:
                self._judgement.events[event.tracepoint].writes += 1

    def _event(self, serials: Sequence[int], index: int) -> Event | None:
        inside = 0 <= index < len(serials)
        return self._model.world.table.find(serials[index]) if inside else None

    def _seen_event(self, event: Event, index: int) -> SeenEvent:
        fields = "; ".join(each.text for each in event.fields)
        fresh = SeenEvent(event.tracepoint, fields, index)
        return self._judgement.events.setdefault(event.tracepoint, fresh)


def _stores(call: Call, operation: ops.Operation) -> list[Step]:
    """The memory that a call reads, as stores of the listing."""
    actor, found = operation.actor, []
    for each in call.before.memory:
        data = each.data[:_SHOWN]
        if isinstance(operation, ops.Ioctl) and each.address == operation.argument:
            data = _structure(operation, data)
        if data:
            found.append(Step(0, ops.Store(actor, each.address, data), (), ops.Observation(0), ()))
    return found


def _structure(operation: ops.Ioctl, data: bytes) -> bytes:
    """A struct user_reg of any interface, without what is recorded after it."""
    size = int.from_bytes(data[:_SIZE_MEMBER], "little")
    known = operation.request == uapi.DIAG_IOCSREG and size in _REG_SIZES
    return data[:size] if known else data


def _name(call: Call, operation: ops.Operation) -> str:
    """The system call, of an ioctl with its request."""
    name = calls.name_of(call)
    return f"{name}({request(operation.request)})" if isinstance(operation, ops.Ioctl) else name
