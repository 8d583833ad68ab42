"""Cases declare the optional features they use, and are skipped on kernels without them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from errno import EBADF, EFAULT, EINVAL, ENOENT, ENOEXEC, ENOSYS, ENOTDIR
from typing import Any

from msgspec.structs import replace

from conformance import ops
from conformance.abi.bpf import PROG_LOAD, Command, ProgramType
from conformance.abi.profile import profile_for
from conformance.cases.case import Facility
from conformance.client import tracefs
from conformance.ops import SubmitWrite, View
from conformance.ops.calls import NUMBERS, Call
from conformance.ops.compat import Ioctl32, Mmap32, Read32, Write32, Writev32
from conformance.ops.credentials import CLONE_NEWUSER, Unshare
from conformance.ops.memory import MapDevice
from conformance.ops.race import Race
from conformance.results.outcome import Outcome as Came
from conformance.results.outcome import SkipReason
from conformance.runner.kernel_features import facilities_of, promised_by
from conformance.runner.runner import Runner
from tests.cases.variants import Outcome, all_variants, honest, judged
from tests.runner.fake_guest import PLAIN, Guest, running

# Profiles for the cases that do not apply to 6.12.
PROFILES = [
    profile_for(name)
    for name in (
        *("6.1", "5.18", "first-commit", "merge-window"),
        *("rfc-v1", "rfc-v1,long-record-stops-buffer=fixed", "6.8"),
    )
]
IMPLIED = {Facility.BPF_TRACING: {Facility.PERF, Facility.BPF}}
BPF = 321
IO_URING_SETUP = 425
EXECVEAT, UNSHARE = NUMBERS["execveat"], NUMBERS["unshare"]
SEVERAL_PROCESSORS = re.compile(rb"CPUS\{0[-,]1\}")
PARANOID = "/proc/sys/kernel/perf_event_paranoid"


def with_implied(facilities: set[Facility]) -> set[Facility]:
    """Declared features with those that they imply."""
    return facilities.union(*(IMPLIED.get(each, set()) for each in facilities))


def used(program: Sequence[ops.Operation]) -> Iterator[Facility]:
    """The optional features that the operations of a program need."""
    stored: dict[tuple[str, int], bytes] = {}
    for operation in program:
        match operation:
            case ops.Store(actor=actor, address=address, data=data):
                stored[actor, address] = data
            case ops.PerfEventOpen():
                yield Facility.PERF
            case ops.IoctlDescriptor():
                yield Facility.BPF_TRACING
            case ops.RunProgram(line=line, attach=attach):
                if "bpftrace" in line:
                    yield Facility.BPF_TRACING
                if attach == ops.Tracer.PERF:
                    yield Facility.PERF
            case ops.Bpf(actor=actor, command=command, address=address):
                yield Facility.BPF
                attributes = stored.get((actor, address), b"")
                kind = int.from_bytes(attributes[: PROG_LOAD.member("prog_type").size], "little")
                tracing = (ProgramType.KPROBE, ProgramType.TRACEPOINT)
                if command == Command.PROG_LOAD and kind in tracing:
                    yield Facility.BPF_TRACING
            case ops.WriteFile(path=tracefs.KPROBE_EVENTS):
                yield Facility.KPROBES
            case Race(tracks=tracks) if len(tracks) > 1:
                yield Facility.SMP
            case ops.KernelMemory():
                yield Facility.FREED_MEMORY
            case MapDevice():
                yield Facility.DEVICE_MEMORY
            case Ioctl32() | Read32() | Write32() | Writev32() | Mmap32():
                yield Facility.IA32
            case Unshare(flags=flags) if flags & CLONE_NEWUSER:
                yield Facility.USER_NAMESPACES
            case SubmitWrite():
                yield Facility.IO_URING
            case ops.WriteFile(path=tracefs.DYNAMIC_EVENTS, data=data) if data.startswith(b"e:"):
                yield Facility.EPROBES
            case ops.ReadFile(path=tracefs.SNAPSHOT) | ops.WriteFile(path=tracefs.SNAPSHOT):
                yield Facility.SNAPSHOT
            case ops.WriteFile(path=path, data=data) if path.endswith("/filter"):
                # The meaning of a CPU set depends on the number of processors.
                if SEVERAL_PROCESSORS.search(data):
                    yield Facility.SMP
            case ops.WriteFile(path=path, data=data) if path.endswith("/trigger"):
                # Removals are refused on a kernel without the feature, too.
                for facility in (Facility.HIST, Facility.SNAPSHOT):
                    name = facility.value.encode()
                    if data.startswith((name, b"enable_" + name, b"disable_" + name)):
                        yield facility
            case ops.ReadFile(path=path) if path.endswith("/hist"):
                yield Facility.HIST
            case ops.ReadFile(path=path, view=View.EXACT) if path.endswith("/trigger"):
                # The list of all probes.
                yield from (Facility.HIST, Facility.SNAPSHOT)


def test_cases_declare_what_they_use(recorded: dict[str, Outcome]) -> None:
    declared: dict[str, set[Facility]] = {}
    using: dict[str, set[Facility]] = defaultdict(set)
    for variant in all_variants():
        outcome = recorded.get(variant.id)
        if outcome is None:
            profile = next(each for each in PROFILES if variant.case.applies(each))
            outcome = honest(variant, profile=profile)
        declared[variant.case.id] = with_implied(set(variant.case.facilities))
        using[variant.case.id] |= with_implied(set(used(outcome.lockstep.program)))
    wrong = {name: (using[name], declared[name]) for name in using if using[name] != declared[name]}
    assert wrong == {}


def test_implied_features_are_not_declared() -> None:
    cases = {variant.case for variant in all_variants()}
    twice = [
        case.id
        for case in cases
        if {*case.facilities} & set().union(*(IMPLIED.get(each, set()) for each in case.facilities))
    ]
    assert twice == []


# A guest with every optional feature.
FULL = Guest(
    {IO_URING_SETUP: EFAULT, EXECVEAT: ENOTDIR}, {"/sys/devices/system/cpu/kernel_max": "63\n"}
)


class Bare(Guest):
    """A guest without optional features."""

    def __init__(self) -> None:
        files = (PARANOID, tracefs.KPROBE_EVENTS, tracefs.DYNAMIC_EVENTS, tracefs.SNAPSHOT)
        refused: dict[object, int] = {BPF: ENOSYS, IO_URING_SETUP: ENOSYS, EXECVEAT: ENOEXEC}
        refused[UNSHARE] = EINVAL
        super().__init__(refused | dict.fromkeys(files, ENOENT))

    def _result(self, call: Call) -> dict[str, Any]:
        result = super()._result(call)
        if call[:2] == ["sys", NUMBERS["mmap"]] and "fd" in str(call[2]):
            result["errno"] = EBADF
        if any(str(each).endswith("/hist") for each in call[1:2]):
            result["errno"] = ENOENT
        return result

    def configured(self, option: str) -> bool | None:
        return option == "CONFIG_KASAN"

    @property
    def asked(self) -> int:
        """The number of calls of bpf(2)."""
        return sum(call[:2] == ["sys", BPF] for call in self.calls)


def begun(runner: Runner, *facilities: Facility) -> tuple[Came, str, str]:
    """Outcome, reason and text of a case that only begins."""
    result = judged(runner, replace(PLAIN, facilities=facilities))
    return result.outcome, result.reason, result.evidence.docs


def test_features_are_detected_by_trying() -> None:
    assert facilities_of(FULL) == set(Facility)
    assert facilities_of(Bare()) == set()


def test_case_without_its_feature_is_not_judged() -> None:
    guest = Bare()
    runner = running(guest, promised=frozenset())
    assert begun(runner)[0] is Came.PASS
    assert guest.asked == 0
    missing = "the kernel has no CONFIG_BPF_EVENTS and no CONFIG_KPROBE_EVENTS"
    for _ in range(2):
        went = begun(runner, Facility.BPF_TRACING, Facility.KPROBES)
        assert went == (Came.SKIP, SkipReason.CONFIG, missing)
    assert guest.asked == 2


def test_promised_features_are_not_probed() -> None:
    assert begun(running(Bare()), Facility.PERF)[0] is Came.PASS


def test_configuration_promises_features() -> None:
    lines = ["CONFIG_PERF_EVENTS=y", "CONFIG_BPF_SYSCALL=y"]
    assert promised_by(lines) == {Facility.PERF, Facility.BPF}
    lines += ["CONFIG_HIST_TRIGGERS=y", "CONFIG_TRACER_SNAPSHOT=y"]
    assert promised_by([*lines, "CONFIG_IO_URING=y"]) >= {*promised_by(lines), Facility.IO_URING}
    lines += ["CONFIG_IO_URING=y", "CONFIG_KPROBE_EVENTS=y", "CONFIG_SMP=y"]
    lines.append("CONFIG_USER_NS=y")
    tried = {Facility.DEVICE_MEMORY, Facility.IA32, Facility.FREED_MEMORY}
    assert promised_by(lines) == {*Facility} - tried
    assert promised_by([]) == set()
