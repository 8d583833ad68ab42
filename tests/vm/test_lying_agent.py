"""A real guest whose agent lies to us: an error of the guest's, at once or by the deadline."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.outcome import Blame, Outcome
from conformance.plugin.guests import explain
from vm import argv, root
from vm.deadline import Deadline
from vm.errors import AgentStuck, ChannelBroken, VmError
from vm.guest.version import versions
from vm.machine import Machine, MachineSpec

pytestmark = pytest.mark.kernel

BOOT_SECONDS = 120.0
ANSWER_SECONDS = 2.0
# Beside the answer's: what is looked at before a guest is called stuck.
PATIENCE = 60.0
PING = ["sys", 39, [], None]

# In the place of the next answer comes what the file says.
LIAR = """

_honest = Port.send


def _lying(self, message):
    try:
        descriptor = os.open("/tmp/lie", os.O_RDONLY)
    except OSError:
        return _honest(self, message)
    lie = os.read(descriptor, 99).decode()
    os.close(descriptor)
    if not lie or "results" not in message:
        return _honest(self, message)
    os.unlink("/tmp/lie")
    number, first = message["id"], message["results"][0]
    whole = wire.pack(message)
    said = {
        "silence": b"",
        "garbage": b"\\0\\x1b[2J garbage",
        "gigabytes": wire.MAGIC + b"\\x7f\\xff\\xff\\xff" + bytes(4),
        "half": whole[: len(whole) // 2],
        "flipped": whole[:-1] + bytes([whole[-1] ^ 1]),
        "earlier": wire.pack({**message, "id": number - 1}),
        "later": wire.pack({**message, "id": number + 7}),
        "nobody": wire.pack({"results": message["results"]}),
        "none": wire.pack({"id": number, "results": []}),
        "empty": wire.pack({"id": number, "results": [{}]}),
        "text": wire.pack({"id": number, "results": "done"}),
        "digits": wire.pack({"id": number, "results": [{**first, "data": "0g"}]}),
        "huge": wire.pack({"id": number, "results": [{**first, "data": "0" * (1 << 22)}]}),
        "deep": wire.frame(b'{"id":' * 100000),
        "twice": whole + whole,
    }[lie]
    rest = memoryview(said)
    while rest:
        rest = rest[os.write(self._descriptor, rest) :]


Port.send = _lying
"""


@pytest.fixture(scope="module")
def guest(built_kernel: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A guest whose root holds another agent."""
    checkout = tmp_path_factory.mktemp("checkout")
    shutil.copytree(Path(root.__file__).parent, checkout / "vm")
    port = checkout / "vm/guest/port.py"
    port.write_text(port.read_text() + LIAR)
    # Of its version as well.
    version = checkout / "vm/guest/version.py"
    version.write_text(f"def versions():\n    return {versions()!r}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(root, "_CHECKOUT", checkout)
        patch.setattr(root, "_NEEDS", checkout / "vm/guest/needs.py")
        patch.setattr(argv, "_INIT", checkout / "vm/guest/init.py")
        archive = root.root_archive(root.interpreter(), tmp_path_factory.mktemp("root"))
        spec = MachineSpec(built_kernel.image, root=archive)
        directory = tmp_path_factory.mktemp("guest")
        deadline = Deadline(BOOT_SECONDS, "boot")
        with Machine.boot(spec, directory=directory, deadline=deadline) as guest:
            yield guest


def lied_to(guest: Machine, lie: str) -> list[dict[str, Any]]:
    """Ask a new actor, whose answer is the lie."""
    guest.call("", [["reset"]])
    guest.call("", [["spawn", "a"]])
    call = ["spill", "/tmp/lie", lie.encode().hex(), 0o1101]
    return guest.call("a", [call], deadline=Deadline(ANSWER_SECONDS, "answer"))


@pytest.mark.parametrize(
    ("lie", "error", "said"),
    [
        ("garbage", ChannelBroken, "magic"),
        ("gigabytes", ChannelBroken, "length"),
        ("half", ChannelBroken, "bytes of a frame"),
        ("flipped", ChannelBroken, "checksum"),
        ("later", ChannelBroken, "was asked last"),
        ("nobody", ChannelBroken, "answer None"),
        ("none", ChannelBroken, "1 results expected"),
        ("text", ChannelBroken, "1 results expected"),
        ("empty", ChannelBroken, "no result of a call"),
        ("digits", ChannelBroken, "no result of a call"),
        ("deep", ChannelBroken, "not JSON"),
        ("silence", AgentStuck, "waits for another"),
        ("earlier", AgentStuck, "waits for another"),
    ],
)
def test_a_lie_is_the_guests_error(
    guest: Machine, lie: str, error: type[VmError], said: str
) -> None:
    began = time.monotonic()
    with pytest.raises(error, match=said) as caught:
        lied_to(guest, lie)
    assert time.monotonic() - began < PATIENCE
    trouble = explain(caught.value, True)
    assert trouble is not None
    assert (trouble.outcome, trouble.blame) == (Outcome.ERROR, Blame.GUEST)
    assert len(trouble.reason) < 1000


@pytest.mark.parametrize("lie", ["twice", "huge"])
def test_what_is_no_lie_about_the_kernel_does_no_harm(guest: Machine, lie: str) -> None:
    (result,) = lied_to(guest, lie)
    assert result["errno"] == 0
    (result,) = guest.call("a", [PING])
    assert result["value"] > 1
