"""Kprobe programs that are rejected, and checks that no longer exist."""

import os

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.kprobes import (
    KPROBE,
    PLAIN,
    SOCKET_FILTER,
    TRACEPOINT,
    add_kprobe,
    call_function,
    listen_to,
    load_counting,
    returning,
    runs_of,
)
from conformance.client.bpf import Bpf
from conformance.client.perf import open_raw, open_stored, store_id
from conformance.client.tracefs import KPROBES

case = surface(
    "bpf",
    spec="kernel/events/core.c:__perf_event_set_bpf_prog",
    doc="include/uapi/linux/perf_event.h@v6.12",
    level="detail",
    tier="full",
    isolation="global",
    facilities="bpf_tracing kprobes",
)


@case(spec="kernel/bpf/syscall.c:bpf_prog_load")
@doc("include/uapi/linux/bpf.h@v4.1:bpf_prog_type, kern_version:")
@doc("the release a program was made for, checked until 5.0")
@variants({"0": 0, "4.1.0": 0x040100, "all-bits": 0xFFFF_FFFF})
def test_kprobe_version(ue: UserEvents, version: int) -> None:
    """A kprobe program with another kernel version, or none, is loaded and runs."""
    data, name = ue.open_data(), add_kprobe(ue)
    program = Bpf(ue.process).load(returning(0), KPROBE, kern_version=version)
    assert program.errno == ""
    event = listen_to(ue.process, name)
    assert event.set_program(program.slot).value == 0
    call_function(data)
    assert event.count == 0


@case(doc="PERF_EVENT_IOC_SET_BPF takes the descriptor of a program that is made for a kprobe")
@variants({"socket_filter": SOCKET_FILTER, "tracepoint": TRACEPOINT})
def test_kprobe_wrong_program(ue: UserEvents, kind: int) -> None:
    """A program of another type than kprobe is EINVAL, and does not run."""
    data, name = ue.open_data(), add_kprobe(ue)
    program = Bpf(ue.process).load(returning(0), kind)
    assert program.errno == ""
    event = listen_to(ue.process, name)
    assert event.set_program(program.slot).errno == "EINVAL"
    call_function(data)
    assert event.count == 1


@case(spec="kernel/bpf/syscall.c:bpf_prog_get")
@doc("PERF_EVENT_IOC_SET_BPF takes the descriptor of a program")
def test_kprobe_no_program(ue: UserEvents) -> None:
    """The descriptor of anything but a program is EINVAL, a closed one EBADF."""
    name = add_kprobe(ue)
    event = listen_to(ue.process, name)
    map_ = Bpf(ue.process).array()
    assert event.set_program(map_.slot).errno == "EINVAL"
    assert event.set_program(event.slot).errno == "EINVAL"
    assert event.set_program(ue.open_data(os.O_RDONLY).slot).errno == "EINVAL"
    map_.close()
    assert event.set_program(map_.slot).errno == "EBADF"


@case(spec="perf_event_set_bpf_handler", isolation="none", facilities="bpf_tracing")
@doc("PERF_EVENT_IOC_SET_BPF takes the descriptor of a program, for events of the kernel's tracing")
@variants({"kprobe": KPROBE, "tracepoint": TRACEPOINT, "socket_filter": SOCKET_FILTER})
def test_kprobe_not_traced(ue: UserEvents, kind: int) -> None:
    """A perf event that is neither a tracepoint nor a kprobe takes no program: EINVAL."""
    # PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.
    event = open_raw(ue.process, 1, 9)
    assert event.errno == ""
    program = Bpf(ue.process).load(returning(1), kind)
    assert program.errno == ""
    assert event.set_program(program.slot).errno == "EINVAL"


@case(spec="kernel/bpf/syscall.c:bpf_prog_load; kernel/events/core.c:perf_allow_kernel")
@doc("include/uapi/linux/bpf.h@v4.1:bpf_prog_type: silent about rights")
def test_kprobe_unprivileged(ue: UserEvents) -> None:
    """Unprivileged, kprobe programs are EPERM, and perf events on kprobes EACCES."""
    data, name = ue.open_data(), add_kprobe(ue)
    user = ue.new_process()
    store_id(user, name, PLAIN, KPROBES)
    user.setuid(1000)
    assert Bpf(user).load(returning(1), KPROBE).errno == "EPERM"
    assert open_stored(user, PLAIN).errno == "EACCES"
    call_function(data)


@case(doc="PERF_EVENT_IOC_SET_BPF takes the descriptor of a program; silent about rights")
def test_kprobe_handed_down(ue: UserEvents) -> None:
    """A process that was passed both descriptors attaches the program without privileges."""
    data, name = ue.open_data(), add_kprobe(ue)
    program, counts = load_counting(Bpf(ue.process))
    event = listen_to(ue.process, name)
    child = ue.fork(ue.process)
    child.setuid(1000)
    assert event.of(child).set_program(program.slot).value == 0
    call_function(data)
    assert runs_of(counts) == 1


@case(spec="trace_kprobe.c:unregister_trace_kprobe", facilities="perf kprobes")
@doc("kprobetrace.rst@v6.12: -:GROUP/EVENT removes a probe")
def test_kprobe_busy(ue: UserEvents) -> None:
    """Removing a kprobe used by perf is EBUSY; once it is removed, its id is EINVAL."""
    name = add_kprobe(ue)
    event = listen_to(ue.process, name)
    assert ue.tracefs.remove_kprobe(name).errno == "EBUSY"
    event.close()
    assert store_id(ue.process, name, PLAIN, KPROBES).value == 8
    assert ue.tracefs.remove_kprobe(name).ok
    assert open_stored(ue.process, PLAIN).errno == "EINVAL"
    assert ue.tracefs.remove_kprobe(name).errno == "ENOENT"
