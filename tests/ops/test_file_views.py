"""Views of text files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.errors import NotModelled
from conformance.ops import View
from conformance.ops.decoding.file_views import read
from tests.cases.variants import client
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
    if view not in (View.RECORDS, View.DISTINCT):
        assert seen(view, once) == once


@pytest.mark.parametrize(
    ("data", "own"),
    [
        (b"", b""),
        (b"\nActive: 0\nBusy: 0\n", b""),
        (b"t00001_a\nt00002_a\n\nActive: 3\n", b"t00001_a\n"),
        (b"t00001_a # Used by ftrace\n", b"t00001_a # Used by ftrace\n"),
        (b"u:t00001_a u32 b\nu:t00002_a t00001_c\n", b"u:t00001_a u32 b\n"),
        # Whatever is neither a total nor of another program.
        (b"xt00001_a\nActive: x\nu:other\n", b"xt00001_a\nActive: x\nu:other\n"),
        (b"t00001_\xff\xa0\n", b"t00001_\xff\xa0\n"),
        (b"ue:t00001_a;u32 b\nue:t00002_a;u8 t00001_c\n", b"ue:t00001_a;u32 b\n"),
        (b"e:uevt/t00001_p user_events/t00001_e\n", b"e:uevt/t00001_p user_events/t00001_e\n"),
        (b"s:synthetic/t00002_s u32 a\np:uevt/t00002_k do_exit\n", b""),
        # With indexes.
        (
            b"7:t00001_e # Used by ftrace\n1:t00002_x\n8:t00001_f\n\nMax: 4096\n",
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


AVAILABLE = b"# Available triggers:\n# traceon traceoff hist\n"


@pytest.mark.parametrize(
    ("data", "left"),
    [
        (AVAILABLE, b""),
        (AVAILABLE + b"traceon:unlimited\n", AVAILABLE + b"traceon:unlimited\n"),
        (b"# a comment\ntraceon:unlimited\n", b"# a comment\ntraceon:unlimited\n"),
    ],
)
def test_triggers_omit_the_list_of_available_ones(data: bytes, left: bytes) -> None:
    assert seen(View.TRIGGERS, data) == left


def test_counts_omit_sizes_and_times() -> None:
    stats = b"entries: 1\nbytes: 44\noldest event ts:     3.1\nnow ts:    13.2\nnew: 1\n"
    assert seen(View.COUNTS, stats) == b"entries: 1\nnew: 1\n"


def test_exact_view_of_a_format_is_not_modelled() -> None:
    """An exact comparison would report the kernel's id as a difference."""
    ue = client()
    ue.open_data().register(f"{ue.name()} u32 a")
    path = ue.tracefs.event_path(ue.name(), "format")
    assert "ID: N" in ue.tracefs.read(path, View.ARRAYS).text
    with pytest.raises(NotModelled, match="a view without it"):
        ue.tracefs.read(path)
