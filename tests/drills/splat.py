"""A case that passes while the console has a kernel report."""

from __future__ import annotations

import os

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents
from conformance.ops import WriteFile

case = surface(
    "drill",
    doc="Documentation/dev-tools/kasan.rst@v6.12: reports go to the console",
    level="contract",
)


@case
def test_splat(ue: UserEvents) -> None:
    """All answers are right, and the kernel reports a bug."""
    assert ue.tracefs.status() == ""
    complaint = b"BUG: KASAN: use-after-free in drill+0x1/0x2\n"
    # Unseen by the model, which has no such file.
    behind = ue.lockstep._executor
    (seen,) = behind.execute([WriteFile("root", "/dev/kmsg", complaint, os.O_WRONLY)], ())
    assert seen.value == len(complaint)
