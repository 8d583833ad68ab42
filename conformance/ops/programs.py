"""Programs of the host that use events: perf, trace-cmd, bpftrace."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import ClassVar

from conformance.ops.calls import Call
from conformance.ops.operation import Operation

# Seconds of an idle machine with KVM: bpftrace compiles.
PROGRAM_S = 12.0
# Directories of the host that the guest has as well.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENVIRONMENT = {
    "PATH": SEARCH_PATH,
    "HOME": "/root",
    "LC_ALL": "C",
}


class Tracer(StrEnum):
    """What a program attaches to an event."""

    FTRACE = "ftrace"
    PERF = "perf"


class RunProgram(Operation, frozen=True):
    """Run ``line`` with sh(1), among the programs of the host; the value is its exit code.

    ``attach`` is what programs that it starts, and that go on, attach to ``event``; ``detach`` what
    programs that it ends had attached.  The model knows no programs: it answers with ``status``
    and ``prints``, the literals of the case.
    """

    line: str
    prints: str = ""
    status: int = 0
    event: str = ""
    attach: str = ""
    detach: str = ""
    depends_on_events: ClassVar[bool] = True
    changes_guest: ClassVar[bool] = True

    def c_text(self) -> str:
        # JSON escapes quotes and new lines as C does.
        return f"system({json.dumps(self.line)})"

    def calls(self) -> list[Call]:
        return [["start_program", ["sh", "-c", self.line], _ENVIRONMENT], ["end_program"]]
