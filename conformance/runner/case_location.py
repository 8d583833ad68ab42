"""Where a case failed: file and line of its source."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path
from types import CodeType, FrameType, FunctionType

from msgspec.structs import replace

from conformance.cases.case import declared
from conformance.results.case_result import CaseResult

_ROOT = Path(__file__).parents[2]


def failing_line(function: FunctionType, error: BaseException) -> int:
    """The innermost line of the case's file in a traceback, 0 if there is none."""
    file = function.__code__.co_filename
    frames = traceback.walk_tb(error.__traceback__)
    return next(reversed([n for frame, n in frames if frame.f_code.co_filename == file]), 0)


def case_frame(error: BaseException) -> FrameType | None:
    """The frame of the case in a traceback."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return next((each for each in frames if _is_case(each)), None)


def described(error: BaseException, file: str = "") -> str:
    """An error on one line, with the innermost line of a file, by default that of the case."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frame = case_frame(error)
    file = file or (frame.f_code.co_filename if frame else "")
    walked = traceback.walk_tb(error.__traceback__)
    lines = [line for each, line in walked if each.f_code.co_filename == file]
    return f"{Path(file).name}:{lines[-1]}: {text}" if lines else text


def _is_case(frame: FrameType) -> bool:
    return declared(frame.f_globals.get(frame.f_code.co_name)) is not None


def located(result: CaseResult, function: FunctionType, line: int) -> CaseResult:
    """The result with its source location: the failing line, for ``line`` 0 the function."""
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
