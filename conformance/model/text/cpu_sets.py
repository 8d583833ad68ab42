"""CPUS{...} in filters.

Source: trace_events_filter.c:parse_pred, filter_pred_8_cpumask and the like,
do_filter_scalar_cpumask; lib/bitmap-str.c:bitmap_parselist.
"""

from __future__ import annotations

import re

from conformance.model.errors import NotModelled

WORD = "CPUS"
OPERATORS = ("==", "!=", "&")
# Processors of a guest for cases that name more than one.
_PROCESSORS = 2
# CONFIG_NR_CPUS is never larger.
_MAX_CPUS = 8192
_RANGES = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
# Other characters of a list: steps, spaces, "all", and N for the last processor.
_OTHER_LIST = re.compile(r"[0-9,:/\sNal-]*")


def parse(text: str) -> frozenset[int] | None:
    """cpulist_parse(): numbers and ranges, None if refused."""
    if _RANGES.fullmatch(text) is None:
        if _OTHER_LIST.fullmatch(text) is None:
            return None
        raise NotModelled(f"the processors {text}")
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if first > last or last >= _MAX_CPUS:
            return None
        found.update(range(first, last + 1))
    if max(found) >= _PROCESSORS:
        raise NotModelled(f"the processors {text}")
    return frozenset(found)


def passes(operator: str, value: int, size: int, processors: frozenset[int]) -> bool:
    """Whether a field of ``size`` bytes with the unsigned ``value`` passes."""
    if len(processors) == 1:
        # A set of one processor is compared as a number.
        return (value in processors) == (operator != "!=")
    # The lower four of eight bytes count; a number that is no processor never passes.
    number = value & 0xFFFFFFFF if size == 8 else value
    if number >= _PROCESSORS or operator == "==":
        return False
    return operator == "!=" or number in processors
