"""Process 1 of the guest, in a mount namespace of the host."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# As on the host's root, which a user without privileges must not write to.
MOUNT = """\
import os, sys
sys.path.insert(0, sys.argv[1])
from vm.guest import init
os.access = lambda *_: False
init.MOUNTS = [each for each in init.MOUNTS if each[1] == "/tmp"]
init.mount_all(sys.argv[2])
print(os.listdir("/tmp"), os.listdir(sys.argv[2]))
"""


def test_checkout_below_tmp_stays_visible() -> None:
    namespace = ["unshare", "--mount" if os.geteuid() == 0 else "-rm"]
    root = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        (Path(directory) / "file").touch()
        done = subprocess.run(
            [*namespace, sys.executable, "-c", MOUNT, str(root), directory],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.stdout == f"['{Path(directory).name}'] ['file']\n", done.stderr
