"""What is mounted in a guest: by process 1, and for programs of the host."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from vm.shell.root import WORK, root_of

# Flags of mount(2).
MS_RDONLY, MS_SYNCHRONOUS = 1, 16
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


def test_directories_of_programs_and_no_others_are_exported(tmp_path: Path) -> None:
    host, work = tmp_path / "host", tmp_path / "work"
    for name in ("usr/bin", "lib", "home/user", "etc/alternatives", "root"):
        (host / name).mkdir(parents=True)
    (host / "bin").symlink_to("usr/bin")
    (host / "etc/alternatives/awk").symlink_to("/usr/bin/mawk")
    for name in ("passwd", "shadow"):
        (host / "etc" / name).write_text(name)
    work.mkdir()
    with root_of(work, host) as root:
        exports = {each.tag: each for each in root.exports}
        assert set(exports) == {"usr", "lib", "etc", "host"}
        assert {tag for tag, each in exports.items() if each.writable} == {"etc", "host"}
        assert exports["host"].path == work
        settings = exports["etc"].path
        assert {each.name for each in settings.iterdir()} == {"alternatives", "passwd"}
        assert (settings / "alternatives/awk").is_symlink()
        assert root.links == (("/bin", "usr/bin"),)
        assert [(where, flags) for _, where, _, flags in root.mounts] == [
            ("/usr", MS_RDONLY),
            ("/lib", MS_RDONLY),
            ("/etc", 0),
            (WORK, MS_SYNCHRONOUS),
        ]
    assert not settings.exists()


def test_a_file_of_a_directory_that_guests_have_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    program = tmp_path / "program"
    program.touch()
    with root_of(None, tmp_path, more=(program,)) as root:
        assert root.links == ((str(program), f"/mnt{program}"),)
        assert root.exports[-1].path == tmp_path
        _, where, _, flags = root.mounts[-1]
        assert (where, flags) == (f"/mnt{tmp_path}", MS_RDONLY)
