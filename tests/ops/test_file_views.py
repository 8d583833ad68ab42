"""Views of text files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.abi.profile import profile_for
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.errors import NotModelled
from conformance.model.machine import Model
from conformance.ops import View
from conformance.ops.decoding.file_views import read
from tests.model.generated import STEADY

PREFIX = "t00001_"
FORMAT = b"""name: t00001_e
ID: 1234
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:char a[7];\toffset:8;\tsize:20;\tsigned:1;
\tfield:__data_loc char[] b;\toffset:28;\tsize:4;\tsigned:1;
\tfield:__rel_loc char c[];\toffset:32;\tsize:4;\tsigned:1;

print fmt: "ID: %u a[7]=%s", REC->a
"""
TRACE = rb"""# tracer: nop
#
# entries-in-buffer/entries-written: 5/5   #P:1
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          python-71      [000] .....     3.181713: t00001_e: a=0x1 (1)
 a b-c [000] d-99 [001] d..1.    12.000001: t00001_e:No fields found
           <...>-72      [000] .....     3.181714: t00002_e: a=0x2 (2)
           <...>-72      (     71) [000] .....     3.181714: t00001_f: m=x: y
          python-71      [000] .....     3.181715: sched_switch: t00001_e
"""


def seen(view: View, data: bytes, prefix: str = PREFIX) -> bytes:
    """The part of a text that a view compares."""
    return read(view, data, prefix)


@STEADY
@given(st.binary())
def test_exact_view_keeps_everything(data: bytes) -> None:
    assert seen(View.EXACT, data) == data


@STEADY
@given(st.binary(), st.sampled_from(View))
def test_views_are_idempotent_on_any_bytes(data: bytes, view: View) -> None:
    once = seen(view, data)
    assert seen(view, data) == once
    if view is not View.RECORDS:
        assert seen(view, once) == once


@pytest.mark.parametrize(
    ("data", "own"),
    [
        (b"", b""),
        (b"\nActive: 0\nBusy: 0\n", b""),
        (b"t00001_a\nt00002_a\nxt00001_a\n\nActive: 3\n", b"t00001_a\n"),
        (b"t00001_a # Used by ftrace\n", b"t00001_a # Used by ftrace\n"),
        (b"u:t00001_a u32 b\nu:other t00001_c\n", b"u:t00001_a u32 b\n"),
        (b"t00001_\xff\xa0\n", b"t00001_\xff\xa0\n"),
        (b"ue:t00001_a;u32 b\nue:other;u8 t00001_c\n", b"ue:t00001_a;u32 b\n"),
        (b"p:t00001_a\n", b""),
        # With indexes.
        (
            b"7:t00001_e # Used by ftrace\n1:x\n8:t00001_f\n\nMax: 4096\n",
            b"7:t00001_e # Used by ftrace\n8:t00001_f\n",
        ),
    ],
)
def test_own_lines_start_with_the_prefix(data: bytes, own: bytes) -> None:
    assert seen(View.OWN, data) == own


@pytest.mark.parametrize(
    ("data", "left"),
    [
        (b"ue:t00001_a;u8 b\n", b"ue:t00001_a;u8 b\n"),
        (b"ue:t00001_a;u8 b (Used by ftrace perf other)\n", b"ue:t00001_a;u8 b\n"),
        (b"ue:t00001_a (Used by)\nue:t00002_a (Used by)\n", b"ue:t00001_a\n"),
        # Names of events: only a suffix of up to three kinds of listeners is removed.
        (b"ue:t00001_a (Used by me)\n", b"ue:t00001_a (Used by me)\n"),
        (b"ue:t00001_a (Used by perf) b\n", b"ue:t00001_a (Used by perf) b\n"),
    ],
)
def test_definitions_omit_listeners(data: bytes, left: bytes) -> None:
    assert seen(View.DEFINITIONS, data) == left


def test_formats_omit_id_and_a_structure_array_lengths() -> None:
    without_id = FORMAT.replace(b"ID: 1234\n", b"ID: N\n")
    assert seen(View.ARRAYS, FORMAT) == without_id
    assert seen(View.STRUCTURE, FORMAT) == without_id.replace(b"char a[7];", b"char a[];")


@pytest.mark.parametrize("length", [b"0", b"20", b"4294967295", b"-1", b""])
def test_structure_omits_any_array_length(length: bytes) -> None:
    shown = FORMAT.replace(b"a[7];", b"a[" + length + b"];")
    assert seen(View.STRUCTURE, shown) == seen(View.STRUCTURE, FORMAT)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b"offset:8", b"offset:9"),
        (b"size:20", b"size:21"),
        (b"signed:1", b"signed:0"),
        (b"char a[7]", b"char b[7]"),
        (b"char a[7]", b"char a"),
        (b"__data_loc char[] b", b"__data_loc char b[]"),
        (b"name: t00001_e", b"name: t00001_f"),
        (b"a[7]=%s", b"a[8]=%s"),
        (b"ID: 1234\n", b"ID: x\n"),
    ],
)
def test_structure_keeps_everything_else(right: bytes, wrong: bytes) -> None:
    changed = FORMAT.replace(right, wrong, 1)
    assert changed != FORMAT
    assert seen(View.STRUCTURE, changed) != seen(View.STRUCTURE, FORMAT)


@pytest.mark.parametrize(
    ("data", "prefix", "records"),
    [
        (TRACE, PREFIX, b"t00001_e: a=0x1 (1)\nt00001_e:No fields found\nt00001_f: m=x: y\n"),
        (TRACE, "t00001_f:", b"t00001_f: m=x: y\n"),
        (TRACE, "sched_switch:", b"sched_switch: t00001_e\n"),
        (b" a-1  [000] .....  3.181713: t00001_e: m=\xff\xfe\n", PREFIX, b"t00001_e: m=\xff\xfe\n"),
    ],
)
def test_records_are_bodies_of_own_lines(data: bytes, prefix: str, records: bytes) -> None:
    assert seen(View.RECORDS, data, prefix) == records


# Before 6.4: whole records as bytes, the padding of the ring buffer included, a NUL at the end.
DUMPS = b"""# tracer: nop
          python-71      [000] .....     3.181713: \n\
00000000: 90 01 00 00 47 00 00 00 41 00 00 00              ....G...A...\n\
\0          python-71      [000] .....     3.181714: \n\
00000000: 90 01 00 00 47 00 00 00 01 02 03 04 05 06 07 08  ....G...........\n\
00000010: 09 ff ff ff                                      ....\n\
\0          python-71      [000] .....     3.181715: \n\
00000000: 90 01 00 00 47 00 00 00 ee ee ee ee              ....G.......\n\
\0          python-71      [000] .....     3.181716: \n\
\0"""


@pytest.mark.parametrize(
    ("sizes", "payloads"),
    [
        pytest.param(
            (4, 9, 0, 4000),
            ["41 00 00 00", "01 02 03 04 05 06 07 08 09", "", ""],
            id="known-sizes-omit-padding",
        ),
        pytest.param(
            (), ["41 00 00 00", "01 02 03 04 05 06 07 08 09 ff ff ff", "ee ee ee ee", ""],
            id="unknown-sizes-keep-padding",
        ),
        pytest.param(
            (8, 9, 0, 4), ["41 00 00 00", "01 02 03 04 05 06 07 08 09", "", ""],
            id="unexpected-length-is-kept",
        ),
    ],
)  # fmt: skip
def test_payloads_of_dumped_records(sizes: tuple[int, ...], payloads: list[str]) -> None:
    assert read(View.RECORDS, DUMPS, PREFIX, sizes).decode().split("\n") == [*payloads, ""]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param(b"....G...A...", b"....G...B...", id="text"),
        pytest.param(b"\n00000010: 09", b"\n00000020: 09", id="offset"),
    ],
)
def test_inconsistent_dump_differs(right: bytes, wrong: bytes) -> None:
    assert right in DUMPS
    sizes = (4, 9, 0, 4000)
    changed = DUMPS.replace(right, wrong, 1)
    assert read(View.RECORDS, changed, PREFIX, sizes) != read(View.RECORDS, DUMPS, PREFIX, sizes)


def test_exact_view_of_a_format_is_not_modelled() -> None:
    """An exact comparison would report the kernel's id as a difference."""
    profile = profile_for("6.12.117")
    ue = UserEvents(Lockstep(Model(profile), ModelExecutor(Model(profile))))
    ue.open_data().register(f"{ue.name()} u32 a")
    path = ue.tracefs.event_path(ue.name(), "format")
    assert "ID: N" in ue.tracefs.read(path, View.ARRAYS).text
    with pytest.raises(NotModelled, match="a view without it"):
        ue.tracefs.read(path)
