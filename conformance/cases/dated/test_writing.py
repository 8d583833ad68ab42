"""Dated changes of writes: what is rejected, recorded, and passed to BPF."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.cases.support.bpf_recorder import Recorder
from conformance.client.addresses import PAGE
from conformance.client.perf import listen
from conformance.client.user_events import UserEvents

case = surface(
    "dated",
    spec="trace_events_user.c:user_events_write_core",
    doc="Documentation/trace/user_events.rst@v5.18: Writing Data: silent about bad payloads",
)


@case(spec="fault_in_iov_iter_readable", profiles="5.18..6.0", switch="unreadable_payload_refused")
def test_unreadable_payload_refused(ue: UserEvents) -> None:
    """A payload that ends in unreadable memory is EFAULT; in the first kernels it was truncated."""
    data = ue.event("u16 a", enabled=True).data
    address = ue.process.map() + PAGE - 5
    ue.process.store(address, bytes(5))
    written = data.write_at(address, 6)
    assert written.errno == ue.dated("unreadable_payload_refused", since="EFAULT", before="")


@case(spec="user->min_size", profiles="5.18..6.0", switch="payload_size_checked")
def test_payload_size_checked(ue: UserEvents) -> None:
    """A payload shorter than the fields is EINVAL; in the first kernels it was recorded."""
    event = ue.event("u16 a", enabled=True)
    written = event.write(b"\1")
    assert written.errno == ue.dated("payload_size_checked", since="EINVAL", before="")


@case(
    spec="trace_events_user.c:user_event_validate",
    profiles="5.18..6.0",
    switch="dynamic_fields_validated",
)
def test_dynamic_fields_validated(ue: UserEvents) -> None:
    """A dynamic field that ends past its record is EFAULT; the first kernels did not check."""
    event = ue.event("__rel_loc u8[] a", enabled=True)
    written = event.write(b"\0\0\1\0")
    assert written.errno == ue.dated("dynamic_fields_validated", since="EFAULT", before="")


@case(
    spec="idx < 0",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data: the index is the one "
    "registration returned",
    switch="negative_index_refused",
)
def test_negative_index_refused(ue: UserEvents) -> None:
    """A negative index is EINVAL even if nothing is registered; before, it was ENOENT."""
    written = ue.open_data().write_event(-1)
    assert written.errno == ue.dated("negative_index_refused", since="EINVAL", before="ENOENT")


@case(
    spec="tp->key.enabled",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data: silent about what a write "
    "without a listener returns",
    switch="ebadf_when_disabled",
)
def test_ebadf_when_disabled(ue: UserEvents) -> None:
    """Writing a disabled event is EBADF; before, it returned the length."""
    event = ue.event("u8 a")
    assert event.write(b"\1").value == ue.dated("ebadf_when_disabled", since=-1, before=5)


@case(
    spec="trace_events_user.c:user_event_ftrace: copy_nofault",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data: the data begin with the write "
    "index, the rest is the payload",
    switch="empty_payload",
)
def test_empty_payload(ue: UserEvents) -> None:
    """An event without fields is recorded by its index alone; before 6.5 that was EFAULT."""
    event = ue.event(enabled=True)
    assert event.write().errno == ue.dated("empty_payload", since="", before="EFAULT")


@case(
    spec="trace_events_user.c:user_event_bpf, user_event_perf",
    doc="Documentation/trace/user_events.rst@v6.12: silent; until 5.18-rc1 programs were given a "
    "struct user_bpf_context",
    needs="perf_sink",
    switch="bpf_programs_run",
    facilities="bpf_tracing",
)
def test_bpf_programs_run(ue: UserEvents) -> None:
    """A BPF program can be attached, and only the 5.18 merge window runs it."""
    event = ue.event("u64 a")
    recorder = Recorder(ue.process)
    assert recorder.attach(listen(ue.process, ue.name())).value == 0
    assert event.write(bytes(8)).value == 12
    assert recorder.take().runs == ue.dated("bpf_programs_run", since=1, before=0)
