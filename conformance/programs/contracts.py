"""The contract that a call is about, for a deviation: documentation and kernel function."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.programs.judgement import JudgedCall

_DOCUMENT = "Documentation/trace/user_events.rst"
_SOURCE = "kernel/trace/trace_events_user.c"
_WRITING = ("Writing Data", "user_events_write_core()")
# Sections of the document, and functions.
_CONTRACTS: Mapping[str, tuple[str, str]] = {
    "ioctl(DIAG_IOCSREG)": ("Registering", "user_events_ioctl_reg()"),
    "ioctl(DIAG_IOCSUNREG)": ("Unregistering", "user_events_ioctl_unreg()"),
    "ioctl(DIAG_IOCSDEL)": ("Deleting", "user_events_ioctl_del()"),
    "read": ("Status", "user_seq_show()"),
    "mmap": ("Status", "user_status_mmap()"),
    "write": _WRITING,
    "writev": _WRITING,
    "pwritev": _WRITING,
    "pwritev2": _WRITING,
}


def contract_of(call: JudgedCall) -> str:
    """Where the behaviour of a call is documented and decided."""
    if call.name not in _CONTRACTS:
        return f"no section of {_DOCUMENT}; {_SOURCE}"
    section, function = _CONTRACTS[call.name]
    return f"{_DOCUMENT}, {section}; decided by {function}"
