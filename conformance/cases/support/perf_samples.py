"""Payloads of an event `u32 a`, and the perf samples that they produce."""

import re

from conformance.client.perf import PerfAttr, PerfEvent, Ring, open_perf
from conformance.client.user_events import Event, UserEvents

A = b"\x41\0\0\0"
A_SAMPLE = "SAMPLE misc 1 size 24 raw 12: 41 00 00 00"
B_SAMPLE = "SAMPLE misc 1 size 24 raw 12: 42 00 00 00"
SAMPLING = PerfAttr()


def with_perf(
    ue: UserEvents, fields: str = "u32 a", attr: PerfAttr = SAMPLING
) -> tuple[Event, PerfEvent]:
    """An event, and a perf event on it."""
    return ue.event(fields), open_perf(ue.process, ue.name(), attr)


def with_ring(
    ue: UserEvents, fields: str = "u32 a", attr: PerfAttr = SAMPLING
) -> tuple[Event, PerfEvent, Ring]:
    """An event, a perf event on it, and its ring buffer."""
    event, perf = with_perf(ue, fields, attr)
    return event, perf, perf.map()


def without_raw(ue: UserEvents, sample: str, *, record: int) -> str:
    """A sample without its raw record of ``record`` bytes.

    Some kernels make room for the record in the sample nevertheless, and leave it unwritten.
    """
    room = ue.dated("raw_data_if_asked", since=0, before=(4 + record + 7) // 8 * 8)
    longer = re.sub(r"size (\d+)", lambda size: f"size {int(size[1]) + room}", sample)
    return longer + (" rest" + " 00" * room if room else "")
