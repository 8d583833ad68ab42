"""Where a case failed: file and line of its source."""

from __future__ import annotations

import linecache
import traceback
from dataclasses import replace
from pathlib import Path
from types import CodeType, FunctionType

from conformance.results.case_result import NOT_OK, CaseResult, Outcome

_ROOT = Path(__file__).parents[2]


def failing_line(function: FunctionType, error: BaseException) -> int:
    """The innermost line of the case's file in a traceback, 0 if there is none."""
    file = function.__code__.co_filename
    frames = traceback.walk_tb(error.__traceback__)
    return next(reversed([n for frame, n in frames if frame.f_code.co_filename == file]), 0)


def located(result: CaseResult, function: FunctionType, line: int) -> CaseResult:
    """The result with its source location, for ``line`` 0 that of the function.

    A result as expected is returned unchanged.
    """
    if result.outcome not in NOT_OK | {Outcome.XFAIL}:
        return result
    file, definition = defined_at(function)
    return replace(result, file=file, line=line or definition)


def defined_at(function: FunctionType) -> tuple[str, int]:
    """The file of a case, relative to the checkout, and the line of its ``def``."""
    code = function.__code__
    file = Path(code.co_filename)
    shown = file.relative_to(_ROOT) if file.is_relative_to(_ROOT) else file
    return shown.as_posix(), _definition(code)


def _definition(code: CodeType) -> int:
    """The line of ``def``, which follows the decorators."""
    first = code.co_firstlineno
    lines = enumerate(linecache.getlines(code.co_filename)[first - 1 :], first)
    return next((number for number, text in lines if text.startswith("def ")), first)
