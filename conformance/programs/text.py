"""A judgement as text: the events, the calls that are not as they should be, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance import ops
from conformance.client.lockstep import Step
from conformance.client.tracefs import DATA
from conformance.listing.listing import Listing
from conformance.programs.judgement import JudgedCall, Judgement, Verdict
from host.text import counted, one_line, printable, wrapped

# Earlier calls on the same descriptor that are shown with a call, and groups that are shown.
_MOST_BEFORE = 3
_MOST_GROUPS = 20


def lines_of(judgement: Judgement) -> Iterator[str]:
    """The whole report; its last line is the verdict."""
    yield from _events(judgement)
    yield from _deviations(judgement)
    yield from _refusals(judgement)
    yield from _counted("not judged", judgement.not_judged)
    yield from _counted("note", judgement.remarks)
    yield f"uevt: {verdict(judgement)}"


def verdict(judgement: Judgement) -> str:
    """The result in one line."""
    calls = counted(len(judgement.calls), "call")
    deviating, refused = (len(judgement.of(each)) for each in (Verdict.DEVIATES, Verdict.REFUSED))
    if deviating:
        said = f"{calls}, the kernel deviates from the ABI in {deviating}"
    elif refused:
        said = f"{calls}, {refused} refused as the ABI says: mistakes of the program"
    else:
        said = f"{calls}, all as the ABI allows"
    events = counted(len(judgement.events), "event")
    read = f"{counted(judgement.records, 'record')} read back"
    exact = " byte for byte" if judgement.records and not deviating else ""
    return f"{said}; {events}, {read}{exact}"


def _events(judgement: Judgement) -> Iterator[str]:
    if judgement.events:
        yield "events"
    for event in judgement.events.values():
        fields = f" {event.fields}" if event.fields else ""
        yield from wrapped(
            one_line(
                f"{event.name}{fields}: index {event.index}, registered {event.registered} times, "
                f"{counted(event.writes, 'write')}, {counted(event.records, 'record')}"
            ),
            indent=2,
            hanging=4,
        )


def _deviations(judgement: Judgement) -> Iterator[str]:
    found = judgement.of(Verdict.DEVIATES)
    if found:
        yield "the kernel deviates"
    for call in found[:_MOST_GROUPS]:
        for each in call.step.differences:
            yield from wrapped(f"{one_line(each.field)}", indent=2, hanging=4)
            yield from wrapped(f"expected  {one_line(each.allowed)}", indent=4, hanging=14)
            yield from wrapped(f"kernel    {one_line(each.observed)}", indent=4, hanging=14)
        yield from _program(judgement, call)
    if len(found) > _MOST_GROUPS:
        yield f"  and {len(found) - _MOST_GROUPS} more"


def _refusals(judgement: Judgement) -> Iterator[str]:
    groups: dict[tuple[str, str, str], list[JudgedCall]] = {}
    for call in judgement.of(Verdict.REFUSED):
        key = call.name, call.step.seen.errno, call.reason
        groups.setdefault(key, []).append(call)
    if groups:
        yield "the program is refused"
    for (name, error, reason), calls in list(groups.items())[:_MOST_GROUPS]:
        times = f", {len(calls)} times" if len(calls) > 1 else ""
        why = f": {reason}" if reason else ""
        yield from wrapped(one_line(f"{name} -1 {error}{times}{why}"), indent=2, hanging=4)
        yield from _program(judgement, calls[0])
    if len(groups) > _MOST_GROUPS:
        yield f"  and {len(groups) - _MOST_GROUPS} more"


def _counted(title: str, found: dict[str, int]) -> Iterator[str]:
    for text, count in found.items():
        times = f" ({count} times)" if count > 1 else ""
        yield from wrapped(one_line(f"{title}: {text}{times}"), hanging=2)


def _program(judgement: Judgement, call: JudgedCall) -> Iterator[str]:
    """The call as C, after the last calls on its descriptor that registered or opened."""
    operation = call.step.operation
    before = [
        each
        for each in judgement.calls
        if each.step.number < call.step.number
        and each.verdict is Verdict.ALLOWED
        and each.step.operation.actor == operation.actor
        and isinstance(each.step.operation, (ops.Open, ops.Ioctl, ops.Dup))
    ][-_MOST_BEFORE:]
    shown = [*before, call]
    numbers = {each.step.number for each in shown}
    for line in Listing(list(_steps(shown))).lines:
        number = int(line.partition(".")[0])
        if number in numbers:
            mark = ">" if number == call.step.number else " "
            yield from wrapped(f"{mark} {printable(line)}", indent=4, hanging=10)


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
        yield from call.steps
