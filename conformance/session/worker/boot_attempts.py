"""Give a kernel up that does not boot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from vm.errors import BootFailed, HostTrouble, VmError

# Failed boots in a row before a kernel is given up.
_BOOTS = 2


class BootAttempts:
    """Counts failed boots in a row."""

    def __init__(self) -> None:
        self._failures: list[VmError] = []

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Context of one boot.  Raises HostTrouble instead after too many failures."""
        if len(self._failures) == _BOOTS:
            # Another boot would take its full time limit; earlier results have the consoles.
            last = self._failures[-1]
            again = HostTrouble(f"not booted again: {last}", hint=last.hint)
            if isinstance(last, BootFailed):
                again = BootFailed(f"{again}", phase=last.phase, hint=last.hint)
                again.party, again.findings = last.party, last.findings
            raise again
        try:
            yield
        except VmError as error:
            self._failures.append(error)
            raise
        self._failures.clear()
