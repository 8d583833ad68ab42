"""A recorded program as a shell script, if it only reads and writes files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from conformance import ops
from conformance.ops.decoding.file_views import View
from conformance.ops.encoding import decode_operation
from conformance.repro.errors import NotExpressible
from conformance.repro.source import Description
from conformance.results.recorded_program import RecordedAnswer, RecordedStep

_HEAD = """\
#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# {case}: {sentence}
# Exit status 0: as expected; 1: a step deviates; 4: it cannot run here.

[ -w /sys/kernel/tracing/dynamic_events ] || {{
	echo 'not root, or tracefs is not mounted'
	exit 4
}}
deviates() {{
	printf 'step %s: expected %s, got %s\\n' "$1" "$2" "$3"
	exit 1
}}
# expect STEP success|failure STATUS
expect() {{
	got=failure
	[ "$3" -eq 0 ] && got=success
	[ "$got" = "$2" ] || deviates "$@"
}}
# reads STEP EXPECTED GOT
reads() {{
	[ "$2" = "$3" ] || deviates "$@"
}}
"""
_TOTALS = "^$|^(Active|Busy|Max): "


def shell_script(steps: Sequence[RecordedStep], about: Description) -> str:
    """The script.  Raises NotExpressible, naming the operation that a shell cannot perform."""
    lines = [_HEAD.format(case=about.case, sentence=about.sentence)]
    for number, step in enumerate(steps, 1):
        lines += _lines(number, step)
    return "\n".join([*lines, "echo as expected", ""])


def _lines(number: int, step: RecordedStep) -> Iterator[str]:
    operation = decode_operation(step.operation)
    if isinstance(operation, ops.Spawn):
        return
    if len({(each.errno, each.data) for each in step.allowed}) != 1:
        raise NotExpressible(f"step {number} has several answers: use --c")
    (answer, *_) = step.allowed
    wanted = "failure" if answer.errno else "success"
    reason = f"  # {answer.errno}" if answer.errno else ""
    yield f"{_command(number, operation, answer)}"
    if not (isinstance(operation, ops.ReadFile) and answer.data is not None):
        yield f"expect {number} {wanted} $?{reason}"


def _command(number: int, operation: ops.Operation, answer: RecordedAnswer) -> str:
    match operation:
        case ops.WriteFile(path=path, data=data, flags=flags):
            arrow = ">>" if flags & os.O_APPEND or not flags & os.O_TRUNC else ">"
            text = "".join(_escaped(byte) for byte in data)
            return f"(printf -- '{text}' {arrow} {shlex.quote(path)}) 2>/dev/null"
        case ops.ReadFile(path=path, view=View.EXACT | View.OWN as view, prefix=prefix):
            own = f" | grep -Ev '{_TOTALS}'" if view is View.OWN and prefix else ""
            if answer.data is None:
                return f"cat {shlex.quote(path)} > /dev/null 2>&1"
            expected = bytes.fromhex(answer.data).decode("latin-1").rstrip("\n")
            return f'reads {number} {shlex.quote(expected)} "$(cat {shlex.quote(path)}{own})"'
        case ops.MakeDirectory(path=path) | ops.Mkdir(path=path):
            return f"mkdir {shlex.quote(path)} 2>/dev/null"
        case ops.RemoveDirectory(path=path):
            return f"rmdir {shlex.quote(path)} 2>/dev/null"
    kind = type(operation).__name__
    raise NotExpressible(f"step {number} ({kind}) is no read or write of a file: use --c")


def _escaped(byte: int) -> str:
    plain = 0x20 <= byte < 0x7F and byte not in b"'\\%"
    return chr(byte) if plain else f"\\{byte:03o}"
