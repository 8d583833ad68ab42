"""Ports of the guest: virtio-serial devices known by the names that the host gave them."""

from __future__ import annotations

import os
import time

from vm import wire

PORTS = "/sys/class/virtio-ports"
#: The devices that were found, by the names of their ports; who is forked need not search again.
_found: dict[str, str] = {}
_SECONDS = 10.0


class PortMissing(Exception):
    """The machine has no port of that name."""


class HostGone(Exception):
    """Nobody holds the host's end."""


class Port:
    """An open port: messages go out of it.  What comes in is the engine's."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def named(cls, name: str) -> Port:
        """The port of a name.  Raises PortMissing, OSError."""
        return cls(os.open(find(name), os.O_RDWR | os.O_CLOEXEC))

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


def allow_everybody() -> dict[str, str]:
    """Let actors that are no longer root open the ports of their children.

    The devices of all ports there are, by their names.
    """
    _search()
    for device in _found.values():
        os.chmod(device, 0o666)
    return _found


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
