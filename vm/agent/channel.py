"""The host's end of one port: send and receive frames under a deadline."""

from __future__ import annotations

import select
import socket
from typing import Any

from host.deadline import Deadline
from vm import wire
from vm.agent import encoding
from vm.errors import ChannelBroken, NoAnswer

_CHUNK = 1 << 18


class ChannelEnded(ChannelBroken):
    """The guest's end is closed; the post-mortem finds out why."""


class Channel:
    """One stream of frames; unusable after a ChannelBroken."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._decoder = wire.Decoder()

    def fileno(self) -> int:
        """For select."""
        return self._socket.fileno()

    def close(self) -> None:
        """Hang up.  Idempotent."""
        self._socket.close()

    @property
    def pending(self) -> int:
        """Bytes of an incomplete frame."""
        return self._decoder.pending

    def send(self, payload: bytes, deadline: Deadline) -> None:
        """Send a message.  Raises NoAnswer, ChannelBroken, ChannelEnded."""
        try:
            frame = memoryview(wire.frame(payload))
        except wire.FrameError as error:
            raise ChannelBroken(f"request not sent: {error}") from None
        while frame:
            try:
                frame = frame[self._socket.send(frame) :]
            except BlockingIOError:
                if not select.select([], [self], [], deadline.remaining())[1]:
                    # Nothing can follow a partial frame.
                    self.close()
                    raise NoAnswer(
                        f"the guest took no request for {deadline.what} within {deadline.limit}"
                    ) from None
            except (OSError, ValueError) as error:
                raise ChannelEnded(f"the channel ended: {error}") from None

    def fill(self) -> None:
        """Read the available bytes.  Raises ChannelEnded."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            raise ChannelEnded(f"the channel ended: {error}") from None
        if not data:
            raise ChannelEnded("the channel ended")
        self._decoder.feed(data)

    def take(self) -> dict[str, Any] | None:
        """The next complete message, or None.  Raises ChannelBroken on a corrupt one.

        For the reply to a request that is its number, "id", and the undecoded "reply"
        (vm.agent.encoding).
        """
        try:
            payload = self._decoder.take()
            if payload is None:
                return None
            if payload.startswith(encoding.REPLY):
                return {"id": encoding.number_of(payload), "reply": payload}
            return wire.unpack(payload)
        except wire.FrameError as error:
            raise ChannelBroken(f"corrupt {error}") from None

    def clear(self) -> None:
        """Discard what the last user of this port has sent."""
        self._decoder = wire.Decoder()
        while select.select([self], [], [], 0)[0]:
            self.fill()
            self._decoder = wire.Decoder()
