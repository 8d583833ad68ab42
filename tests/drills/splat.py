"""A case that passes while the kernel complains on its console."""

from __future__ import annotations

import os

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents
from conformance.ops import WriteFile

case = surface(
    "drill",
    doc="Documentation/dev-tools/kasan.rst@v6.12: reports go to the console",
)


@case
def test_splat(ue: UserEvents) -> None:
    """The kernel complains while all answers are right."""
    assert ue.tracefs.status() == ""
    complaint = b"BUG: KASAN: use-after-free in drill+0x1/0x2\n"
    # Behind the model's back, which knows nothing of this file.
    behind = ue.lockstep._executor
    (seen,) = behind.execute([WriteFile("root", "/dev/kmsg", complaint, os.O_WRONLY)], ())
    assert seen.value == len(complaint)
