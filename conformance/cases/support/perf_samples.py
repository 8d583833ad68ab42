"""Payloads of an event `u32 a`, and the perf samples that they produce."""

import re

from conformance.client.user_events import UserEvents

A = b"\x41\0\0\0"
A_SAMPLE = "SAMPLE misc 1 size 24 raw 12: 41 00 00 00"
B_SAMPLE = "SAMPLE misc 1 size 24 raw 12: 42 00 00 00"


def without_raw(ue: UserEvents, sample: str, *, record: int) -> str:
    """A sample without its raw record of ``record`` bytes.

    Some kernels make room for the record in the sample nevertheless, and leave it unwritten.
    """
    room = ue.dated("raw_data_if_asked", since=0, before=(4 + record + 7) // 8 * 8)
    longer = re.sub(r"size (\d+)", lambda size: f"size {int(size[1]) + room}", sample)
    return longer + (" rest" + " 00" * room if room else "")
