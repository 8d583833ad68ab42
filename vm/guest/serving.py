"""Serving the host's requests: what the engine leaves to Python, and what it cannot go on with."""

from __future__ import annotations

import os

from vm import wire
from vm.guest import native_engine
from vm.guest.port import HostGone, Port

TYPE_CHECKING = False  # as typing's, whose import costs a fifth of a second here
if TYPE_CHECKING:
    from collections.abc import Callable

    #: What a call yields before the watched memory is looked at: value, errno, data.
    Outcome = tuple[int, int, bytes | None]


class BadCall(Exception):
    """The host asked for something that is no call; nothing was performed."""


class Reborn(Exception):
    """This process is a child that was forked for a call: it has another port, and no request."""


#: What ends a batch: a call that is none, and a task that failed (task.TaskLost).
_NO_ANSWER = (
    BadCall,
    TypeError,
    ValueError,
    KeyError,
    OverflowError,
    MemoryError,
    OSError,
    RuntimeError,
)


class Server:
    """A process that serves its port, until the host hangs up."""

    def __init__(self, port: Port) -> None:
        self._port = port
        #: Calls that are JSON, by their name.
        self._forms: dict[str, Callable[..., Outcome]] = {}

    def begin(self, **hello: object) -> None:
        """Say that we are there, and who.  Raises wire.FrameError."""
        self._port.send({"id": 0, "hello": os.getpid()} | hello)
        native_engine.begin(self._port.fileno())

    def handle(self, event: int) -> None:
        """Do what the engine asks for.

        Raises HostGone, wire.FrameError, MemoryError, Reborn: nothing more can be served.
        """
        if event == native_engine.HOST_GONE:
            raise HostGone
        if event in native_engine.BROKEN:
            raise wire.FrameError(native_engine.BROKEN[event], "not what a request is")
        if event == native_engine.NO_MEMORY:
            raise MemoryError
        try:
            if event == native_engine.TOO_LONG:
                raise BadCall(f"the answer has no room in {wire.LIMIT} bytes")
            outcome = self.perform(*native_engine.left())
        except _NO_ANSWER as error:
            told = f"{type(error).__name__}: {error}"
            self._port.send({"id": native_engine.drop(), "error": told})
        else:
            if not native_engine.note(*outcome):
                raise MemoryError

    def perform(self, kind: int, content: bytes) -> Outcome:
        """A call that the engine leaves to us.  Raises BadCall, Reborn, what the call raises."""
        match wire.unpack(content.rstrip(b"\0")):
            case {"call": [str(name), *rest]} if name in self._forms:
                return self._forms[name](*rest)
            case other:
                raise BadCall(f"unknown call: {other!r:.200}")
