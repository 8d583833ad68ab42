"""The order in which surfaces and cases are listed."""

# In the order in which a client meets them; then the others by name, historical ones last.
_FIRST = (
    *("header", "registration", "grammar", "enable", "write", "unregister", "delete", "lifetime"),
    *("persist", "multi_format", "status", "dynamic_events", "format", "trace", "perf"),
)
_LAST = ("status_page", "bpf_context", "rfc")


def listed(case_id: str) -> tuple[tuple[int, str], str]:
    """Sort key of the id of a case: the order of results and reports."""
    return place(case_id.partition(".")[0]), case_id


def place(surface: str) -> tuple[int, str]:
    """Sort key of a surface."""
    if surface in _LAST:
        return len(_FIRST) + 1 + _LAST.index(surface), surface
    return _FIRST.index(surface) if surface in _FIRST else len(_FIRST), surface
