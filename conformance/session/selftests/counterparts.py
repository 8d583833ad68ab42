"""The cases that test what an upstream test tests, and why it may fail on a correct kernel."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Explanation(Struct, frozen=True):
    """A heading of docs/selftests.md that explains failures on a correct kernel.

    It explains one that has an assertion with ``pattern``, or (``alone``) one that does not occur
    in a new guest.
    """

    heading: str
    pattern: str = ""
    alone: bool = False


EXPLANATIONS = (
    Explanation("A reference that is dropped later", r"\b(parse|check_match|event_delete|clear)\("),
    Explanation("An event that an earlier test left behind", alone=True),
    # Assertions of 6.1.y; other releases have none at these lines.
    Explanation("A fix without its test", r"^(ftrace_test\.c:327|dyn_test\.c:111): "),
)

# By id of upstream's test (``Selftest.id``), separated by spaces.
_CASES = {
    "abi.enablement": "enable.every_change enable.after_unregister",
    "abi.flags": "registration.unknown_flags persist.stays persist.deleted",
    "abi.bit_sizes": "registration.enable_size registration.bit_range registration.misaligned",
    "abi.multi_format": "multi_format.two_formats multi_format.beside_single",
    "abi.forks": "enable.fork_follows enable.fork_child_unregisters",
    "abi.clones": "tasks.later_thread_shares tasks.later_thread_registers",
    "dyn.basic_types": "grammar.ioctl_accepts grammar.dynamic_events_accepts grammar.ioctl_refuses",
    "dyn.loc_types": "grammar.ioctl_accepts grammar.dynamic_events_accepts",
    "dyn.size_types": "grammar.size_of_structs_only",
    "dyn.flags": "grammar.ioctl_text_flags grammar.dynamic_events_text_flags",
    "dyn.matching": "grammar.registers_again grammar.differs grammar.struct_size_differs",
    "ftrace.register_events": "grammar.registers_again delete.busy_own_descriptor delete.removes",
    "ftrace.write_events": "write.returns_all_bytes write.negative_index write.parts",
    "ftrace.write_empty_events": "write.no_fields",
    "ftrace.write_fault": "write.unreadable_payload",
    "ftrace.write_validator": "write.data_loc_bounds write.rel_loc_bounds",
    "ftrace.print_fmt": "format.types format.print_fmt_of_several",
    "perf.perf_write": "perf.record perf.status_text",
    "perf.perf_empty_events": "perf.raw_no_fields",
}

COUNTERPARTS: Mapping[str, tuple[str, ...]] = {
    test: tuple(cases.split()) for test, cases in _CASES.items()
}
"""Ids of cases, each a function with all its variants."""
