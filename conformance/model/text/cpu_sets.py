"""Sets of processors in filters, CPUS{...}.

Source: trace_events_filter.c:parse_pred, filter_pred_8_cpumask and the like,
do_filter_scalar_cpumask; lib/bitmap-str.c:bitmap_parselist.
"""

from __future__ import annotations

import re

from conformance.model.errors import NotModelled

WORD = "CPUS"
# Before 6.6 it is no word at all.
SINCE = (6, 6)
OPERATORS = ("==", "!=", "&")
# Of a guest on which a case that names more than one processor runs.
_PROCESSORS = 2
# No kernel has so many (CONFIG_NR_CPUS).
_TOO_MANY = 8192
_RANGES = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
# What lists may hold beside that: steps, spaces, "all", and N for the last processor.
_OTHER_LIST = re.compile(r"[0-9,:/\sNal-]*")


def parse(text: str) -> frozenset[int] | None:
    """cpulist_parse(): a list of numbers and ranges, None for one that is refused."""
    if _RANGES.fullmatch(text) is None:
        if _OTHER_LIST.fullmatch(text) is None:
            return None
        raise NotModelled(f"the processors {text}")
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if first > last or last >= _TOO_MANY:
            return None
        found.update(range(first, last + 1))
    if max(found) >= _PROCESSORS:
        raise NotModelled(f"the processors {text}")
    return frozenset(found)


def passes(operator: str, value: int, size: int, processors: frozenset[int]) -> bool:
    """Whether a field of ``size`` bytes, of an unsigned ``value``, passes."""
    if len(processors) == 1:
        # One processor is compared with as a number.
        return (value in processors) == (operator != "!=")
    # Of eight bytes the lower four are looked at; what is no processor never passes.
    number = value & 0xFFFFFFFF if size == 8 else value
    if number >= _PROCESSORS or operator == "==":
        return False
    return operator == "!=" or number in processors
