"""Ports of the guest: virtio-serial devices known by the names that the host gave them."""

from __future__ import annotations

import os
import time

from vm import wire

PORTS = "/sys/class/virtio-ports"
#: The devices that were found, by the names of their ports; who is forked need not search again.
_found: dict[str, str] = {}
_SECONDS = 10.0
_CHUNK = 65536


class PortMissing(Exception):
    """The machine has no port of that name."""


class HostGone(Exception):
    """Nobody holds the host's end."""


class Port:
    """An open port: whole frames in and out."""

    def __init__(self, name: str) -> None:
        self._descriptor = os.open(find(name), os.O_RDWR | os.O_CLOEXEC)
        self._decoder = wire.Decoder()
        self._last = 0

    def fileno(self) -> int:
        """For poll."""
        return self._descriptor

    def close(self) -> None:
        """Hang up; what the host has sent and nobody has read is dropped."""
        os.close(self._descriptor)

    def send(self, message: object) -> None:
        """Send one message.  Waits for the host's end to exist.  Raises wire.FrameError."""
        rest = memoryview(wire.pack(message))
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def receive(self) -> dict[str, object]:
        """Wait for one message.  Raises HostGone, wire.FrameError.

        What came before comes no more: a request that is performed twice changes the kernel.
        """
        while (payload := self._decoder.take()) is None:
            data = os.read(self._descriptor, _CHUNK)
            if not data:
                raise HostGone
            self._decoder.feed(data)
        message = wire.unpack(payload)
        number = message.get("id")
        if not isinstance(number, int) or number <= self._last:
            raise wire.FrameError("order", f"request {number!r} after {self._last}")
        self._last = number
        return message

    @property
    def more(self) -> bool:
        """Whether bytes beyond the last message are here already."""
        return self._decoder.pending > 0


def find(name: str) -> str:
    """The device of a port, by its name in sysfs (there is no udev).  Raises PortMissing."""
    end = time.monotonic() + _SECONDS
    while name not in _found:
        if time.monotonic() > end:
            raise PortMissing(f"no virtio port named {name!r} among {_listing()}")
        _search()
        if name not in _found:
            # Ports are announced one by one, after their driver has probed.
            time.sleep(0.002)
    return _found[name]


def allow_everybody() -> None:
    """Let actors that are no longer root open the ports of their children."""
    _search()
    for device in _found.values():
        os.chmod(device, 0o666)


def _search() -> None:
    for port in _listing():
        if name := _name(port):
            _found[name] = f"/dev/{port}"


def _listing() -> list[str]:
    try:
        return os.listdir(PORTS)
    except OSError:
        return []


def _name(port: str) -> str:
    try:
        descriptor = os.open(f"{PORTS}/{port}/name", os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 256).decode().strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)
