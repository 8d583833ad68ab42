"""Switches of user_events by the releases that have them."""

from __future__ import annotations

from msgspec.structs import replace

from conformance.abi.base_switches import BASE
from conformance.abi.bugs import BUGS
from conformance.abi.profile import Profile, Release

# Later than any switch.
FUTURE = "99.0"
# Switches in the order in which they landed in mainline.
FIRST_518 = {
    "perf_sink",
    "print_fmt_generated",
    "deletion_arguments_matched",
    "unreadable_payload_refused",
    "payload_size_checked",
    "dynamic_fields_validated",
    "events_made_as_root",
    "bpf_iter_ignored",
}
FIRST_61 = FIRST_518 | {"strings_formatted_safely"}
BACKPORTED_TO_61 = {"ebadf_when_disabled", "struct_size_matched"}
FIRST_632 = FIRST_61 | {"negative_index_refused"}
FIRST_64 = FIRST_632 | {
    "arguments_matched",
    "null_arguments_matched",
    "empty_payload",
    "auto_delete",
    "text_flags_refused",
}
FIRST_65 = FIRST_64 | BACKPORTED_TO_61
FIRST_68 = FIRST_65 | {"persist"}
UP_TO_612 = FIRST_68 | {"multi_format", "unspaced_fields_match"}


def dated(profile: Profile) -> frozenset[str]:
    """The switches of user_events that are on, known bugs left aside."""
    left_aside = {each.name for each in (*BUGS, *BASE)}
    return profile.switches - left_aside


def before(release: str) -> str:
    """The release before one of mainline, or of a stable series."""
    found = Release.parse(release)
    if found.sublevel:
        return str(replace(found, sublevel=found.sublevel - 1))
    if found.minor:
        return f"{found.major}.{found.minor - 1}"
    return f"{found.major - 1}.19"
