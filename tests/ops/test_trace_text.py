"""Lines of trace files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.ops.decoding.trace_text import bodies, describe, distinct
from tests.model.generated import STEADY

TRACE = r"""# tracer: nop
#
# entries-in-buffer/entries-written: 5/7   #P:1
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
          python-71      [000] .....     3.181713: t00001_e: a=0x1 (1)
 a b-c [000] d-99 [001] d..1.    12.000001: t00001_e:No fields found
           <...>-72      [000] .....    12.181714: t00002_e: a=0x2 (2)
           <...>-72      (     71) [000] .n.1.    12.181714: t00001_f: m=x: y
          python-71      [000] ..h..    12.181713: sched_switch: t00001_e
"""
SHOWN = """entries: 5/7
task 1: t00001_e: a=0x1 (1)
task 2 flags d.: t00001_e:No fields found
task 3: t00002_e: a=0x2 (2)
task 3: t00001_f: m=x: y
task 1 flags .h earlier: sched_switch: t00001_e
"""
HEAD = "  python-71  [000] .....  3.181713: "


def test_counts_heads_and_bodies_are_shown() -> None:
    assert describe(TRACE) == SHOWN


@pytest.mark.parametrize(
    ("prefixes", "shown"),
    [
        (("t00001_",), ["t00001_e: a=0x1 (1)", "t00001_e:No fields found", "t00001_f: m=x: y"]),
        (("t00001_f:", "sched"), ["t00001_f: m=x: y", "sched_switch: t00001_e"]),
    ],
)
def test_bodies_start_with_a_prefix(prefixes: tuple[str, ...], shown: list[str]) -> None:
    assert bodies(SHOWN, *prefixes) == shown


@pytest.mark.parametrize(
    "line",
    [
        "CPU:0 [LOST 5 EVENTS]",
        "CPU:0 [LOST EVENTS]",
        "[LINE TOO BIG]",
        "##### CPU 1 buffer started ####",
        "# WARNING: FUNCTION TRACING IS CORRUPTED",
        "# tracer: function",
        "00000000: 90 01 00 00                                      ....",
        " => do_syscall_64",
        "",
    ],
)
def test_an_unknown_line_is_shown(line: str) -> None:
    assert describe(f"{HEAD}a: b\n{line}\n{HEAD}c: d\n").splitlines() == [
        "task 1: a: b", f"line: {line}", "task 1: c: d"
    ]  # fmt: skip


@STEADY
@given(st.text(st.characters(exclude_characters="\n\0#")).filter(lambda line: ": " not in line))
def test_any_text_between_records_is_shown(line: str) -> None:
    assert f"line: {line}\n" in describe(f"{HEAD}a: b\n{line}\n")


def test_functions_of_a_stack_are_omitted() -> None:
    text = f"{HEAD}<stack trace>\n => a_function\n => 0xffffffff81000000\n"
    assert describe(text) == "task 1: <stack trace>\n"


@pytest.mark.parametrize("kept", ["allocated", "freed"])
def test_an_empty_snapshot_says_whether_it_is_allocated(kept: str) -> None:
    text = f"""# tracer: nop
#
#
# * Snapshot is {kept} *
#
# Snapshot commands:
# echo 0 > snapshot : Clears and frees snapshot buffer
#                      (Doesn't have to be '2' works with any number that
"""
    assert describe(text) == f"snapshot: {kept}\n"


def test_number_of_an_unknown_type_is_omitted() -> None:
    text = f"{HEAD}Unknown type 1530\n{HEAD}x: Unknown type 1530\n"
    assert describe(text) == "task 1: Unknown type N\ntask 1: x: Unknown type 1530\n"


def test_distinct_records_have_no_order() -> None:
    text = f"# entries-in-buffer/entries-written: 3/3   #P:1\n{HEAD}b\n{HEAD}a\n{HEAD}b\nodd\n"
    assert distinct(text) == "a\nb\nline: odd\n"


# Before 6.4: whole records as bytes, the padding of the ring buffer included, a NUL at the end.
DUMPS = """# tracer: nop
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
    assert bodies(describe(DUMPS, sizes), "t00001_") == payloads


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param("....G...A...", "....G...B...", id="text"),
        pytest.param("\n00000010: 09", "\n00000020: 09", id="offset"),
    ],
)
def test_inconsistent_dump_differs(right: str, wrong: str) -> None:
    assert right in DUMPS
    sizes = (4, 9, 0, 4000)
    changed = DUMPS.replace(right, wrong, 1)
    assert describe(changed, sizes) != describe(DUMPS, sizes)
