"""The two values of a comparison that failed, although kernel and model agree.

Cases are loaded without pytest's assertion rewriting.  So the case runs once more, with the answers
that the kernel gave, from a copy of its module in which comparisons of assertions keep both sides.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from types import FrameType

from msgspec import Struct

from conformance.abi.profile import Profile
from conformance.client.executor import Deadline, ModelDeadline
from conformance.client.lockstep import Lockstep, Step
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.ops import Observation, Operation, Watch
from conformance.runner.case_location import case_frame

_LEFT, _RIGHT = "kept_left", "kept_right"
_LONGEST = 200


class Values(Struct, frozen=True):
    """Both sides of a comparison, as text."""

    left: str
    right: str


class _Answers:
    """Executor that gives the answers of a run which has ended."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._left = iter(steps)

    def execute(self, operations: Sequence[Operation], _: Sequence[Watch]) -> list[Observation]:
        """The next answers.  Raises LookupError if they are of other operations."""
        steps = list(islice(self._left, len(operations)))
        if [step.operation for step in steps] != [*operations]:
            raise LookupError("the case goes another way")
        return [step.seen for step in steps]

    def deadline(self, seconds: float, what: str) -> Deadline:
        """No time passes."""
        return ModelDeadline()

    def pause(self, deadline: Deadline) -> None:
        """Nothing is waited for."""


def compared_values(
    error: AssertionError, profile: Profile, steps: Sequence[Step], serial: int
) -> Values | None:
    """The sides of the comparison that raised an error; None if they cannot be found again.

    ``steps`` and ``serial`` are those of the run that it ended.
    """
    case = case_frame(error)
    if case is None:
        return None
    lockstep = Lockstep(Model(profile), _Answers(steps))
    try:
        _repeat(case, UserEvents(lockstep, serial))
    except AssertionError as again:
        *_, (last, line) = traceback.walk_tb(again.__traceback__)
        *_, (_, failed) = traceback.walk_tb(error.__traceback__)
        kept = last.f_locals
        if line == failed and _LEFT in kept:
            return Values(_text(kept[_LEFT]), _text(kept[_RIGHT]))
    except Exception:
        # Whatever goes wrong: the assertion itself is reported.
        return None
    return None


def _repeat(frame: FrameType, user_events: UserEvents) -> None:
    """Run the case of a frame from a copy of its module, with the same arguments."""
    code = frame.f_code
    file = code.co_filename
    tree = _Keeping().visit(ast.parse(Path(file).read_text(encoding="utf-8"), file))
    copy = {name: frame.f_globals[name] for name in ("__name__", "__package__", "__file__")}
    exec(compile(ast.fix_missing_locations(tree), file, "exec"), copy)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    arguments = {name: frame.f_locals[name] for name in names}
    copy[code.co_name](**{**arguments, "ue": user_events})


class _Keeping(ast.NodeTransformer):
    """Let assertions keep the sides of their comparisons in local variables."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        """Keep both sides of a comparison of two."""
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            test.left = _kept(_LEFT, test.left)
            test.comparators = [_kept(_RIGHT, test.comparators[0])]
        return node


def _kept(name: str, value: ast.expr) -> ast.NamedExpr:
    return ast.NamedExpr(ast.Name(name, ast.Store()), value)


def _text(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
