"""Perform the calls that the native engine leaves to Python, and handle its errors."""

from __future__ import annotations

import os

from vm import wire
from vm.guest import native_engine
from vm.guest.port import HostGone, Port

TYPE_CHECKING = False  # importing typing takes 0.2 s under emulation
if TYPE_CHECKING:
    from collections.abc import Callable

    #: Result of a call: value, errno, data.
    Outcome = tuple[int, int, bytes | None]


class BadCall(Exception):
    """The host sent a malformed call; it was not performed."""


class Forked(Exception):
    """Raised in the child of a forking call, which has a new port and no request to answer."""


#: Errors that refuse a request; RuntimeError is tasks.TaskLost.
_REFUSALS = (
    BadCall,
    TypeError,
    ValueError,
    LookupError,
    OverflowError,
    MemoryError,
    OSError,
    RuntimeError,
)


class Server:
    """A process that serves its port until the host hangs up."""

    def __init__(self, port: Port) -> None:
        self._port = port
        #: Handlers of the calls encoded as JSON, by name.
        self._handlers: dict[str, Callable[..., Outcome]] = {}

    def begin(self, **hello: object) -> None:
        """Send the first message and start to serve.  Raises wire.FrameError."""
        self._port.send({"id": 0, "hello": os.getpid()} | hello)
        native_engine.begin(self._port.fileno())

    def handle(self, event: int) -> None:
        """Handle an event of the engine.

        Raises HostGone, wire.FrameError, MemoryError or Forked, which end serving.
        """
        if event == native_engine.HOST_GONE:
            raise HostGone
        if event in native_engine.BROKEN:
            raise wire.FrameError(native_engine.BROKEN[event], "malformed request")
        if event == native_engine.NO_MEMORY:
            raise MemoryError
        try:
            if event == native_engine.TOO_LONG:
                raise BadCall(f"the reply exceeds {wire.LIMIT} bytes")
            outcome = self._perform(native_engine.pending_call())
        except _REFUSALS as error:
            reason = f"{type(error).__name__}: {error}"
            self._port.send({"id": native_engine.drop_request(), "error": reason})
        else:
            if not native_engine.append_result(*outcome):
                raise MemoryError

    def _perform(self, content: bytes) -> Outcome:
        match wire.unpack(content.rstrip(b"\0")):
            case {"call": [str(name), *rest]} if name in self._handlers:
                return self._handlers[name](*rest)
            case other:
                raise BadCall(f"unknown call: {other!r:.200}")
