"""The program and statements of the first version's patch message, taken literally."""

from __future__ import annotations

import mmap
import os

from conformance.cases.case import surface
from conformance.cases.support.rfc_v1 import bound
from conformance.client.data_file import DataFile
from conformance.client.rfc_v1 import register
from conformance.client.tracefs import DATA, MMAP
from conformance.client.user_events import UserEvents

case = surface(
    "rfc",
    spec="trace_events_user.c",
    doc="trace_events_user.c@rfc-v1, message of the patch",
    profiles="rfc-v1",
    isolation="global",
)


@case(
    spec="user_events_mmap, user_events_ioctl, user_events_write",
    doc="the page is mapped, `test` registered, and written to if its byte says so",
)
def test_typical_use(ue: UserEvents) -> None:
    """The program of the message writes while its byte is not zero, and is recorded."""
    opened, page_fd = ue.process.open(MMAP, os.O_RDWR)
    assert opened.errno == ""
    mapped, page_data = ue.process.map_status(page_fd, protection=mmap.PROT_READ)
    assert mapped.errno == ""
    _, slot = ue.process.open(DATA, os.O_RDWR)
    data_fd = DataFile(ue.process, slot)
    data_id = register(data_fd, "test").value
    assert data_id == 1
    for on, payload in ((True, b"one"), (False, b"two"), (True, b"three")):
        if on:
            ue.tracefs.enable("test")
        else:
            ue.tracefs.disable("test")
        if ue.process.load_number(page_data + data_id, 1):
            assert data_fd.write(payload).value == len(payload)
    assert ue.tracefs.records() == ["6f 6e 65", "74 68 72 65 65"]
    ue.tracefs.disable("test")
    assert ue.process.load_number(page_data + data_id, 1) == 0


@case(
    spec="register_user_event; trace_dynevent.c:dyn_event_release",
    doc="events are isolated from those of the kernel",
)
def test_beside_kernel_event(ue: UserEvents) -> None:
    """An event may have the name of a kernel event, which is not affected."""
    data = bound(ue, "sched_switch;u8\ta\t1\t0")
    ue.tracefs.enable("sched_switch")
    assert ue.tracefs.enabled("sched_switch").text == "1\n"
    assert ue.tracefs.enabled("sched_switch", system="sched").text == "0\n"
    assert data.write(b"\x01").value == 1
    ue.tracefs.disable("sched_switch")
    data.close()
    assert ue.tracefs.command("-:sched/sched_switch\n").errno == "ENOENT"
    assert ue.tracefs.command("-:sched_switch\n").errno == ""
    assert ue.tracefs.enabled("sched_switch").errno == "ENOENT"
    assert ue.tracefs.enabled("sched_switch", system="sched").text == "0\n"
    assert ue.open_data().delete("sched_switch").errno == "ENOENT"
