"""A real guest with a lying agent: every lie is an error of the guest by the deadline."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.results.outcome import Blame, Outcome
from conformance.session.worker.blame import explain
from host.deadline import Deadline
from tests.vm.conftest import boot
from vm.errors import AgentStuck, ChannelBroken, VmError
from vm.guest.version import NATIVE, versions
from vm.machine import Machine, MachineSpec
from vm.qemu import command_line, root_archive

pytestmark = pytest.mark.kernel

ANSWER_SECONDS = 2.0
# Seconds for the diagnosis, in addition to the deadline.
PATIENCE = 60.0
PING = ["sys", 39, [], None]

# Added to serving.py: the call "lie" sends the named reply.
LIAR = """

import struct
from contextlib import suppress


class _Lied(Exception):
    pass


def _reply(number, results, length=0xFFFFFFFF, data=b""):
    head = struct.pack("<4sIQ", b"RPLY", results, number)
    return wire.frame(head + struct.pack("<qII", 7, 0, length) * results + data)


def _lie(self, path):
    number = native_engine.drop_request()
    whole = _reply(number, 1)
    reply = {
        "silence": b"",
        "garbage": b"\\0\\x1b[2J garbage",
        "gigabytes": wire.MAGIC + b"\\x7f\\xff\\xff\\xff" + bytes(4),
        "half": whole[: len(whole) // 2],
        "flipped": whole[:-1] + bytes([whole[-1] ^ 1]),
        "earlier": _reply(number - 1, 1),
        "later": _reply(number + 7, 1),
        "none": _reply(number, 0),
        "short": wire.frame(whole[wire.HEADER.size : -8]),
        "long": _reply(number, 1, data=bytes(8)),
        "overlong": _reply(number, 1, 1 << 31),
        "huge": _reply(number, 1, 1 << 21, bytes(1 << 21)),
        "twice": whole + whole,
        "no id": wire.pack({"results": []}),
        "text": wire.pack({"id": number, "results": "done"}),
        "deep": wire.frame(b'{"id":' * 100000),
    }[path]
    rest = memoryview(reply)
    while rest:
        rest = rest[os.write(self._port.fileno(), rest) :]
    raise _Lied


def _handle(self, event):
    self._handlers["lie"] = lambda path: _lie(self, path)
    with suppress(_Lied):
        return _honest(self, event)


_honest, Server.handle = Server.handle, _handle
"""


@pytest.fixture(scope="module")
def guest(built_kernel: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A guest whose root contains the lying agent."""
    checkout = tmp_path_factory.mktemp("checkout")
    shutil.copytree(Path(root_archive.__file__).parents[1], checkout / "vm")
    serving = checkout / "vm/guest/serving.py"
    serving.write_text(serving.read_text() + LIAR)
    # It claims to have the same version.
    version = checkout / "vm/guest/version.py"
    version.write_text(f"NATIVE = {NATIVE!r}\ndef versions():\n    return {versions()!r}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(root_archive, "_CHECKOUT", checkout)
        patch.setattr(root_archive, "_NEEDS", checkout / "vm/guest/needed_files.py")
        patch.setattr(command_line, "_INIT", checkout / "vm/guest/init.py")
        python = root_archive.interpreter()
        archive = root_archive.root_archive(python, tmp_path_factory.mktemp("root"))
        spec = MachineSpec(built_kernel.image, root=archive)
        with boot(spec, tmp_path_factory.mktemp("guest")) as guest:
            yield guest


def lied_to(guest: Machine, lie: str, who: str) -> list[dict[str, Any]]:
    """Make a fresh actor, or the supervisor, lie."""
    guest.call("", [["reset"]])
    guest.call("", [["spawn", "a"]])
    return guest.call(who, [["lie", lie]], deadline=Deadline(ANSWER_SECONDS, "answer"))


@pytest.mark.parametrize(
    ("who", "lie", "error", "message"),
    [
        ("a", "garbage", ChannelBroken, "magic"),
        ("a", "gigabytes", ChannelBroken, "length"),
        ("a", "half", ChannelBroken, "bytes of a frame"),
        ("a", "flipped", ChannelBroken, "checksum"),
        ("a", "later", ChannelBroken, "the last one was"),
        ("a", "none", ChannelBroken, "1 results expected"),
        ("a", "short", ChannelBroken, "malformed reply"),
        ("a", "long", ChannelBroken, "8 bytes after the results"),
        ("a", "overlong", ChannelBroken, "bytes expected"),
        ("a", "silence", AgentStuck, "waits for another"),
        ("a", "earlier", AgentStuck, "waits for another"),
        ("", "no id", ChannelBroken, "answer to request None"),
        ("", "none", ChannelBroken, "1 results expected"),
        ("", "long", ChannelBroken, "8 bytes after the results"),
        ("", "text", ChannelBroken, "1 results expected"),
        ("", "deep", ChannelBroken, "not JSON"),
    ],
)
def test_lie_is_an_error_of_the_guest(
    guest: Machine, who: str, lie: str, error: type[VmError], message: str
) -> None:
    began = time.monotonic()
    with pytest.raises(error, match=message) as caught:
        lied_to(guest, lie, who)
    assert time.monotonic() - began < PATIENCE
    trouble = explain(caught.value, True)
    assert trouble is not None
    assert (trouble.outcome, trouble.blame) == (Outcome.ERROR, Blame.GUEST)
    assert len(trouble.reason) < 1000


@pytest.mark.parametrize(("who", "lie"), [("a", "twice"), ("a", "huge"), ("", "twice")])
def test_harmless_lie(guest: Machine, who: str, lie: str) -> None:
    (result,) = lied_to(guest, lie, who)
    assert result["errno"] == 0
    (result,) = guest.call("a", [PING])
    assert result["value"] > 1
