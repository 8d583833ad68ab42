"""What a trace of kmem events shows: allocations of user_events that are not freed."""

from __future__ import annotations

import pytest

from conformance.ops.allocations import NOTHING_RECORDED, RECORDS_LOST, unfreed

HEAD = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 3/3   #P:2\n#\n"
OURS = "kmalloc: call_site=user_event_parse+0x5c/0x8f0 ptr=000000000000abcd bytes_req=9"


def trace(*events: str, head: str = HEAD) -> bytes:
    """A trace of events."""
    lines = (f"  python3-77 [000] .....  1.0000{n:02}: {event}\n" for n, event in enumerate(events))
    return (head + "".join(lines)).encode()


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ((OURS,), b"user_event_parse 1\n"),
        ((OURS, "kfree: call_site=f+0x1/0x2 ptr=000000000000abcd"), b""),
        ((OURS, "kfree: call_site=f+0x1/0x2 ptr=000000000000abce"), b"user_event_parse 1\n"),
        # An address that is used again, before 6.1 and for a cache.
        (
            (
                OURS,
                "kfree: call_site=f+0x1/0x2 ptr=000000000000abcd",
                "kmem_cache_alloc: call_site=user_event_fault+0x1/0x2 name=x ptr=000000000000abcd",
            ),
            b"user_event_fault 1\n",
        ),
        (
            (
                "kmem_cache_alloc: call_site=user_event_fault+0x1/0x2 ptr=000000000000000a",
                "kmem_cache_free: call_site=f+0x1/0x2 ptr=000000000000000a name=x",
            ),
            b"",
        ),
        # Others allocate too.
        ((OURS.replace("user_event_parse", "do_open"),), NOTHING_RECORDED),
        ((), NOTHING_RECORDED),
    ],
)
def test_what_is_left(events: tuple[str, ...], left: bytes) -> None:
    assert unfreed(trace(*events)) == left


@pytest.mark.parametrize("head", [HEAD.replace("3/3", "3/30"), f"{HEAD}CPU:1 [LOST 7 EVENTS]\n"])
def test_lost_records(head: str) -> None:
    assert unfreed(trace(OURS, head=head)) == RECORDS_LOST
