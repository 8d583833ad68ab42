"""The guest as the runner sees it: a kernel with actors, a console, and generic calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from conformance.cases.case import Case
from conformance.client.executor import Deadline
from conformance.ops.calls import Call
from conformance.results.case_result import Report

# The content of a module's file for the kernel under test, None where there is none.
Modules = Callable[[str], bytes | None]
# Why a case cannot judge a kernel that others use as well and that cannot be replaced by a new one,
# "" if it can.
Unfit = Callable[[Case], str]


class Channel(Protocol):
    """Batches of generic calls by one actor of a guest; knows nothing of user_events."""

    def call(
        self,
        actor: str,
        calls: Sequence[Call],
        watch: Sequence[tuple[str, int, int]] = ...,
    ) -> list[dict[str, Any]]:
        """Perform calls; one result each: value, errno (a number), data and watch in hex."""
        ...

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline scaled to the speed of the guest."""
        ...

    def pause(self, deadline: Deadline) -> None:
        """Sleep a little, never past the deadline."""
        ...


class Guest(Channel, Protocol):
    """A booted kernel with actors, and a console that is evidence."""

    def mark(self, text: str) -> int:
        """Write a line to the console, which proves that the guest answers; its position."""
        ...

    def console(self, since: int) -> str:
        """The text of the console since a mark."""
        ...

    def reports(self, since: int) -> list[Report]:
        """Kernel reports on the console since a mark, and earlier ones not yet returned.

        ``after`` of the earlier ones names the case during which they appeared.
        """
        ...

    def late_reports(self) -> tuple[list[Report], str]:
        """Kernel reports not yet returned, and the text of the console since the first of them.

        ``after`` names the case that began last; "" on a kernel on which none has.
        """
        ...

    def pristine(self, processors: int = 1, *, programs: bool = False) -> None:
        """Replace the kernel by a newly booted one with this number of processors.

        With ``programs`` it can mount those of the host.
        """
        ...

    def mounting(self) -> Call:
        """The call that mounts the programs of the host, in a guest that can."""
        ...

    def configured(self, option: str) -> bool | None:
        """Whether the kernel was built with an option; None where its configuration is unknown."""
        ...
