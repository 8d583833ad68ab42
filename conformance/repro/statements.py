"""The steps of a program as C statements, with the answers that each may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance import ops
from conformance.abi.profile import Profile
from conformance.ops import race, tasks
from conformance.ops.encoding import decode_operation
from conformance.ops.operation import Operation
from conformance.repro import literals as c
from conformance.repro.calls import expression
from conformance.repro.races import Races
from conformance.repro.scopes import Actors, Descriptors
from conformance.repro.structures import Structures
from conformance.results.recorded_program import RecordedAnswer, RecordedStep
from host.text import cut

_Place = tuple[str, int]
_Content = bytes | None
# Characters of a comment about memory.
_SHOWN = 200


class Statements:
    """Writes the statements of one program.  Raises NotExpressible."""

    def __init__(self, steps: Sequence[RecordedStep], profile: Profile) -> None:
        self._steps = steps
        self.program: list[Operation] = [decode_operation(step.operation) for step in steps]
        shown = [bytes.fromhex(a.data) for step in steps for a in step.allowed if a.data]
        self.actors = Actors(self.program, shown)
        self.descriptors = Descriptors()
        self.structures = Structures(self.program, profile)
        self.names = {
            actor: actor.upper() if number else "MAIN"
            for actor, number in self.actors.numbered.items()
        }
        self._watched: dict[_Place, _Content] = {}
        self._lengths: dict[_Place, int] = {}

    def lines(self) -> list[str]:
        """All statements, without indentation of the function."""
        return [line for position in range(len(self._steps)) for line in self._lines(position)]

    def _lines(self, position: int) -> Iterator[str]:
        step, operation = self._steps[position], self.program[position]
        if isinstance(operation, ops.Spawn):
            return
        number = position + 1
        if isinstance(operation, ops.Store) and self._needs_no_check(step):
            yield from self._store(position, operation)
            return
        if isinstance(operation, race.Race):
            yield from Races(self.descriptors, self.names).lines(number, operation)
            call = ""
        else:
            call = self._call(position, operation)
        memory = list(self._memory(step))
        yield from memory
        answers = self._answers(position)
        if call:
            yield from self._performed(number, step, operation, call, answers)
        yield f"EXPECT({answers[0]});" if len(answers) == 1 else _one_of(answers)
        yield from _observed(step)
        yield from self._observed_memory(step)
        yield ""

    def _call(self, position: int, operation: Operation) -> str:
        if isinstance(operation, ops.Store) and (fields := self.structures.initializer(position)):
            where = c.address(operation.address)
            return f"poke({where}, &{fields}, {len(operation.data)})"
        return expression(operation, self.descriptors, self.names)

    def _performed(
        self,
        number: int,
        step: RecordedStep,
        operation: Operation,
        call: str,
        answers: Sequence[str],
    ) -> Iterator[str]:
        actor = "" if self.actors.single else f"{self._performer(operation)}, "
        if step.waited_s is None:
            yield f"STEP({number}, {actor}{call});"
        else:
            listed = ", ".join(f"{{ {answer} }}" for answer in answers)
            yield f"EVENTUALLY({number}, {actor}{call}, {listed});"

    def _performer(self, operation: Operation) -> str:
        return "MAIN" if isinstance(operation, tasks.Die) else self.names[operation.actor]

    def _needs_no_check(self, step: RecordedStep) -> bool:
        """Whether a store needs no check: the only process writes its own memory."""
        return self.actors.single and len(step.allowed) == 1 and not step.allowed[0].errno

    def _store(self, position: int, operation: ops.Store) -> Iterator[str]:
        fields, where = self.structures.initializer(position), c.address(operation.address)
        if fields:
            name = fields[1 : fields.index(")")]
            body = fields[fields.index("{") + 1 : -1].strip().split(", ")
            yield f"*({name} *)({where}) = ({name}){{"
            yield from (f"\t{member}," for member in body)
            yield "};"
        else:
            yield f"store({where}, {c.data(operation.data)});"

    def _memory(self, step: RecordedStep) -> Iterator[str]:
        """Changes of the watched memory that all allowed answers have in common."""
        common, _ = _watched(step)
        for place in [place for place in self._watched if place not in common]:
            del self._watched[place]
            yield f"{self._macro('unwatch')}({self._place(place)});"
        for place, content in common.items():
            if content is not None:
                self._lengths[place] = len(content)
            known = self._watched.get(place, ...)
            if content == known or (content is None and place not in self._lengths):
                continue
            self._watched[place] = content
            yield f"{self._macro('watch')}({self._content(place, content)});"

    def _macro(self, name: str) -> str:
        return name if self.actors.single else name.upper()

    def _place(self, place: _Place) -> str:
        actor, address = place
        return f"{self.names[actor]}, (uintptr_t)({c.address(address)})"

    def _content(self, place: _Place, content: _Content) -> str:
        length = self._lengths.get(place, 1)
        text = f"NULL, {length}" if content is None else c.data(content)
        return f"{self._place(place)}, {text}"

    def _observed_memory(self, step: RecordedStep) -> Iterator[str]:
        """Comments about watched memory that differs from that of every answer."""
        allowed: dict[_Place, set[str | None]] = {}
        for known in (memory for answer in step.allowed for memory in answer.memory):
            allowed.setdefault((known.actor, known.address), set()).add(known.content)
        for each in step.seen.memory if step.seen else ():
            expected = allowed.get((each.actor, each.address))
            if expected and each.content not in expected:
                content = each.content
                text = "not readable" if content is None else bytes.fromhex(content).hex(" ")
                where = f"{self.names[each.actor]}, {c.address(each.address)}"
                yield f"/* Observed in memory ({where}): {cut(text, _SHOWN)} */"

    def _answers(self, position: int) -> list[str]:
        step, operation = self._steps[position], self.program[position]
        if not step.allowed:
            return [".any = true"]
        _, differing = _watched(step)
        fills = getattr(operation, "slot", None) is not None and _fills(operation)
        recorded_first = sorted(step.allowed, key=lambda each: not _recorded(each, step.seen))
        return list(
            dict.fromkeys(self._answer(position, each, fills, differing) for each in recorded_first)
        )

    def _answer(
        self, position: int, answer: RecordedAnswer, fills: bool, differing: Sequence[_Place]
    ) -> str:
        parts = []
        if answer.errno:
            parts.append(f".error = {c.error(answer.errno)}")
        elif answer.value is None or fills:
            parts.append(".any = true")
        else:
            parts.append(f".value = {_number(answer.value)}")
        if answer.data is not None and not answer.errno:
            parts.append(self._data(position, bytes.fromhex(answer.data)))
        if answer.counted:
            parts.append(".counted = true")
        if differing:
            found = {(m.actor, m.address): m.content for m in answer.memory}
            listed = []
            for place in differing:
                raw = found[place]
                content = None if raw is None else bytes.fromhex(raw)
                listed.append(f"{{ {self._content(place, content)} }}")
            parts.append(f".memory = (const struct memory[]){{ {', '.join(listed)}, {{ 0 }} }}")
        return ", ".join(parts)

    def _data(self, position: int, data: bytes) -> str:
        loads = isinstance(self.program[position], ops.Load)
        if loads and (fields := self.structures.loaded(position, data)):
            return f".data = (const char *)&{fields}, .length = {len(data)}"
        return f"DATA({c.string(data)})"


def _watched(step: RecordedStep) -> tuple[dict[_Place, _Content], list[_Place]]:
    """Watched memory that is the same in all allowed answers, and the places that differ."""
    contents: dict[_Place, set[str | None]] = {}
    for answer in step.allowed:
        for each in answer.memory:
            contents.setdefault((each.actor, each.address), set()).add(each.content)
    common: dict[_Place, _Content] = {}
    differing = []
    for place, found in contents.items():
        if len(found) > 1:
            differing.append(place)
            continue
        (content,) = found
        common[place] = None if content is None else bytes.fromhex(content)
    return common, differing


def _fills(operation: Operation) -> bool:
    """Whether the value is the number of a descriptor."""
    kinds = (ops.Open, ops.MemoryFile, ops.PerfEventOpen, ops.Bpf, ops.Dup)
    return isinstance(operation, kinds)


def _one_of(answers: Sequence[str]) -> str:
    return "EXPECT_ONE_OF({ " + " },\n\t      { ".join(answers) + " });"


def _number(value: int) -> str:
    return str(value) if abs(value) < 1 << 31 else f"{value:#x}L"


def _same(allowed: RecordedAnswer, seen: RecordedAnswer) -> bool:
    """Whether an answer is an allowed one, watched memory aside."""
    if allowed.errno or seen.errno:
        return allowed.errno == seen.errno
    data = allowed.data is None or allowed.counted or allowed.data == seen.data
    return data and allowed.value in (None, seen.value)


def _recorded(allowed: RecordedAnswer, seen: RecordedAnswer | None) -> bool:
    """Whether the recorded kernel gave this answer, with this watched memory."""
    return seen is not None and _same(allowed, seen) and set(allowed.memory) == set(seen.memory)


def _observed(step: RecordedStep) -> Iterator[str]:
    """A comment about an answer that is not expected."""
    seen = step.seen
    if seen is None:
        yield "/* This kernel did not answer. */"
        return
    if any(_same(each, seen) for each in step.allowed):
        return
    text = f"-1 {seen.errno}" if seen.errno else str(seen.value)
    if seen.data is not None:
        text += f" {c.comment(c.string(bytes.fromhex(seen.data), ''))}"
    yield from f"/* Observed: {text} */".split("\n")
