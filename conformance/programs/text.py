"""A judgement as text: the events, the calls that are not as they should be, and the verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from conformance import ops
from conformance.client.lockstep import Step
from conformance.client.tracefs import DATA
from conformance.listing.listing import Listing
from conformance.programs.judgement import JudgedCall, Judgement, Verdict
from host.text import counted, one_line, printable, wrapped

# Groups of calls that are shown, and earlier calls that explain one.
_MOST_GROUPS = 20
_MOST_BEFORE = 4
# Reasons that differ in numbers are one group.
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_EXPLAIN = (ops.Open, ops.Ioctl, ops.Dup)
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


def lines_of(judgement: Judgement) -> Iterator[str]:
    """The whole report; its last line is the verdict."""
    yield from _events(judgement)
    yield from _deviations(judgement)
    refused = judgement.of(Verdict.REFUSED)
    mistakes, bugs = ([each for each in refused if bool(each.bug) is bug] for bug in (False, True))
    yield from _refusals(judgement, "the kernel refuses, as the ABI says", mistakes)
    yield from _refusals(judgement, "the kernel refuses because of a known bug", bugs)
    yield from _counted("not judged", judgement.not_judged)
    yield from _counted("not of user_events", judgement.foreign)
    yield from _counted("note", judgement.remarks)
    yield f"uevt: {verdict(judgement)}"


def verdict(judgement: Judgement) -> str:
    """The result in one line."""
    if not judgement.judged and judgement.not_judged:
        return "no user_events call could be judged"
    if not judgement.judged:
        return "the program made no user_events call"
    calls = counted(judgement.judged, "call")
    if not judgement.decided:
        missed = judgement.not_judged.total()
        return f"no verdict: {missed} not judged beside {calls} to open, map or close files"
    deviating, refused = (judgement.of(each) for each in (Verdict.DEVIATES, Verdict.REFUSED))
    bugs = sum(bool(each.bug) for each in refused)
    if deviating:
        said = f"{calls}, the kernel deviates from the ABI in {len(deviating)}"
    elif refused:
        said = calls
        if bugs < len(refused):
            said += f", {len(refused) - bugs} refused as the ABI says: mistakes of the program"
        if bugs:
            said += f", {bugs} refused because of known bugs of the kernel"
    else:
        said = f"{calls}, all as the ABI allows"
    events = counted(len(judgement.events), "event")
    read = f"{counted(judgement.records, 'record')} read back"
    exact = " byte for byte" if judgement.records and not deviating else ""
    others = f"; {judgement.not_judged.total()} not judged" if judgement.not_judged else ""
    return f"{said}{others}; {events}, {read}{exact}"


def _events(judgement: Judgement) -> Iterator[str]:
    if judgement.events:
        yield "events"
    for event in judgement.events.values():
        fields = f" {event.fields}" if event.fields else ""
        done = (
            f"index {event.index}",
            counted(event.registered, "registration"),
            counted(event.writes, "write"),
            counted(event.records, "record"),
        )
        line = _line(f"{event.name}{fields}: {', '.join(done)}")
        yield from wrapped(line, indent=2, hanging=4)


def _deviations(judgement: Judgement) -> Iterator[str]:
    found = judgement.of(Verdict.DEVIATES)
    if found:
        yield "the kernel deviates from the ABI"
    for call in found[:_MOST_GROUPS]:
        yield from wrapped(f"{call.name}: {_contract_of(call)}", indent=2, hanging=4)
        for each in call.step.differences:
            yield from wrapped(_line(each.field), indent=4, hanging=4)
            yield from wrapped(f"expected  {_line(each.allowed)}", indent=6, hanging=10)
            yield from wrapped(f"kernel    {_line(each.observed)}", indent=6, hanging=10)
        yield from _program(judgement, call)
    yield from _more(len(found))


def _contract_of(call: JudgedCall) -> str:
    """Where the behaviour of a call is documented and decided."""
    if call.name not in _CONTRACTS:
        return f"no section of {_DOCUMENT}; {_SOURCE}"
    section, function = _CONTRACTS[call.name]
    return f"{_DOCUMENT}, {section}; decided by {function}"


def _refusals(judgement: Judgement, title: str, refused: Sequence[JudgedCall]) -> Iterator[str]:
    groups: dict[tuple[str, ...], list[JudgedCall]] = {}
    for call in refused:
        key = call.name, call.step.seen.errno, _NUMBER.sub("N", call.reason), call.bug
        groups.setdefault(key, []).append(call)
    if groups:
        yield title
    for calls in list(groups.values())[:_MOST_GROUPS]:
        first = calls[0]
        times = f", {len(calls)} times" if len(calls) > 1 else ""
        why = f": {first.reason}" if first.reason else ""
        why += f" (bug {first.bug})" if first.bug else ""
        line = _line(f"{first.name} = -1 {first.step.seen.errno}{times}{why}")
        yield from wrapped(line, indent=2, hanging=4)
        yield from _program(judgement, first)
    yield from _more(len(groups))


def _line(text: str) -> str:
    """Text in one line; the model holds names as latin-1."""
    try:
        return one_line(text.encode("latin-1").decode())
    except UnicodeError:
        return one_line(text)


def _more(count: int) -> Iterator[str]:
    if count > _MOST_GROUPS:
        yield f"  and {count - _MOST_GROUPS} more"


def _counted(title: str, found: Mapping[str, int]) -> Iterator[str]:
    for text, count in found.items():
        times = f" ({count} times)" if count > 1 else ""
        yield from wrapped(_line(f"{title}: {text}{times}"), hanging=2)


def _program(judgement: Judgement, call: JudgedCall) -> Iterator[str]:
    """The call as C, after the calls that explain it."""
    shown = [*_explaining(judgement, call), call]
    numbers = {each.step.number for each in shown}
    for line in Listing(list(_steps(shown))).lines:
        number = int(line.partition(".")[0])
        if number in numbers:
            mark = ">" if number == call.step.number else " "
            yield from wrapped(f"{mark} {printable(line)}", indent=4, hanging=6)


def _explaining(judgement: Judgement, call: JudgedCall) -> list[JudgedCall]:
    """The last earlier call about each of the same subjects."""
    found: dict[str, JudgedCall] = {}
    for each in judgement.calls:
        if each is call:
            break
        if each.verdict is Verdict.ALLOWED and isinstance(each.step.operation, _EXPLAIN):
            opens = not isinstance(each.step.operation, ops.Ioctl)
            for subject in each.subjects & call.subjects:
                if opens or not subject.startswith("descriptor"):
                    found[subject] = each
    distinct = {each.step.number: each for each in found.values()}
    return [distinct[number] for number in sorted(distinct)][-_MOST_BEFORE:]


def _steps(calls: Sequence[JudgedCall]) -> Iterator[Step]:
    """The steps of calls; a descriptor that none of them opens was opened before."""
    opened = set()
    for call in calls:
        operation = call.step.operation
        slot = getattr(operation, "slot", None)
        if isinstance(operation, ops.Open):
            opened.add((operation.actor, slot))
        elif slot is not None and (operation.actor, slot) not in opened:
            opened.add((operation.actor, slot))
            before = ops.Open(operation.actor, slot, DATA, 0)
            yield Step(0, before, (), ops.Observation(0), ())
        if isinstance(operation, ops.Dup):
            opened.add((operation.actor, operation.new_slot))
        yield from call.steps
