"""Ports of the guest: virtio-serial devices, found by name.

A guest that is the running kernel inherits sockets instead (``inherit``); their devices are
"fd:NUMBER".
"""

from __future__ import annotations

import os
import time

from vm import wire

PORTS = "/sys/class/virtio-ports"
#: Devices by port name.  Forked actors inherit it.
_found: dict[str, str] = {}
_SECONDS = 10.0
#: Prefix of the devices that are inherited descriptors.
_INHERITED = "fd:"


class PortMissing(Exception):
    """The machine has no port of that name."""


class HostGone(Exception):
    """The host has closed its end."""


class Port:
    """An open port for sending; the native engine receives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def named(cls, name: str) -> Port:
        """The port of a name.  Raises PortMissing, OSError."""
        device = find(name)
        if device.startswith(_INHERITED):
            return cls(os.dup(int(device.removeprefix(_INHERITED))))
        return cls(os.open(device, os.O_RDWR | os.O_CLOEXEC))

    def fileno(self) -> int:
        """For poll."""
        return self._descriptor

    def close(self) -> None:
        """Hang up and discard unread input."""
        os.close(self._descriptor)

    def send(self, message: object) -> None:
        """Send one message.  Waits until the host has opened its end.  Raises wire.FrameError."""
        rest = memoryview(wire.pack(message))
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


def find(name: str) -> str:
    """The device of a port, from sysfs because there is no udev.  Raises PortMissing."""
    end = time.monotonic() + _SECONDS
    while name not in _found:
        if time.monotonic() > end:
            raise PortMissing(f"no virtio port named {name!r} among {_listing()}")
        _search()
        if name not in _found:
            # Ports appear one by one after the probe of their driver.
            time.sleep(0.002)
    return _found[name]


def inherit(ports: dict[str, int]) -> None:
    """Use inherited sockets, given by port name, instead of virtio ports."""
    for name, descriptor in ports.items():
        os.set_inheritable(descriptor, False)
        _found[name] = f"{_INHERITED}{descriptor}"


def open_to_all_users(name: str) -> str:
    """Let unprivileged actors open a port for their children.  Raises as find()."""
    device = find(name)
    if not device.startswith(_INHERITED):
        os.chmod(device, 0o666)
    return device


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
