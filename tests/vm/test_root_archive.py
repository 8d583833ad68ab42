"""The archive of the guest's root: its content, and when it is rebuilt."""

from __future__ import annotations

import os
import struct
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.shell_scripts import write_script
from vm.qemu import elf
from vm.qemu import root_archive as root
from vm.qemu.root_archive import NoArchive, interpreter, root_archive


def _names(archive: Path) -> set[str]:
    """The names in a cpio archive in the new ASCII format."""
    content, offset = archive.read_bytes(), 0
    names: set[str] = set()
    while True:
        assert content[offset : offset + 6] == b"070701"
        fields = [int(content[at : at + 8], 16) for at in range(offset + 6, offset + 110, 8)]
        size, length = fields[6], fields[11]
        name = content[offset + 110 : offset + 110 + length - 1].decode()
        if name == "TRAILER!!!":
            return names
        names.add(f"/{name}")
        offset = (offset + 110 + length + 3) // 4 * 4
        offset = (offset + size + 3) // 4 * 4


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return root_archive(interpreter(), tmp_path_factory.mktemp("cache"))


def test_archive_has_the_files_of_python(archive: Path) -> None:
    names = _names(archive)
    checkout = Path(root.__file__).parents[2]
    for name in ("guest/init.py", "guest/supervisor.py", "guest/kernel_facts.py", "wire.py"):
        assert str(checkout / "vm" / name) in names
    assert str(interpreter()) in names
    assert os.fspath(Path(os.__file__)) in names
    assert {"/dev/urandom", "/proc", "/sys", "/tmp"} <= names
    # Imported on demand.
    assert any("zlib" in name for name in names) or "zlib" in sys.builtin_module_names


def test_archive_is_small(archive: Path) -> None:
    """Debugging information of the interpreter alone can be twice as large."""
    assert archive.stat().st_size < 32 << 20


def test_archive_is_cached(tmp_path: Path) -> None:
    first = root_archive(interpreter(), tmp_path)
    status = first.stat()
    assert root_archive(interpreter(), tmp_path).stat() == status


def test_changed_file_rebuilds_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = tmp_path / "extra.py"
    extra.write_text("first = 1\n")
    needed = root._needed
    monkeypatch.setattr(root, "_needed", lambda python: [*needed(python), extra])
    assert b"first = 1" in root_archive(interpreter(), tmp_path / "cache").read_bytes()
    extra.write_text("second = 2\n")
    assert b"second = 2" in root_archive(interpreter(), tmp_path / "cache").read_bytes()


def test_failing_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its message is in English."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    python = write_script(tmp_path / "python", 'echo "its locale is $LC_ALL" >&2; exit 1')
    with pytest.raises(NoArchive, match=r"its locale is C$"):
        root_archive(python, tmp_path / "cache")


def test_symlinks_in_a_path_are_kept(tmp_path: Path) -> None:
    (tmp_path / "real/lib").mkdir(parents=True)
    file = tmp_path / "real/lib/module.py"
    file.write_text("")
    (tmp_path / "link").symlink_to("real")
    found = root._path_to(tmp_path / "link/lib/module.py")
    assert {tmp_path / "link", tmp_path / "real/lib", file} <= found
    assert tmp_path / "link/lib" not in found


def test_circular_symlinks(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(NoArchive, match="too many links"):
        root._path_to(tmp_path / "a/file")


def test_segments_of_an_interpreter() -> None:
    python = interpreter()
    loader = elf.loader_of(python)
    assert loader is not None
    assert loader.is_file()
    assert elf.segments(Path(__file__)) == ()
    assert elf.loaded(Path(__file__)) == Path(__file__).read_bytes()
    library = Path(sysconfig.get_config_var("LIBDIR")) / str(sysconfig.get_config_var("LDLIBRARY"))
    for file in filter(Path.is_file, (python, library)):
        ends = [segment.end for segment in elf.segments(file) if segment.kind == elf.PT_LOAD]
        assert len(elf.loaded(file)) == (max(ends) if ends else file.stat().st_size)


def test_missing_files_are_left_out(tmp_path: Path) -> None:
    """Byte-code that was never written, and directories."""
    there = tmp_path / "there.py"
    there.write_text("")
    named = f'["{there}", "{tmp_path}/absent.so", "{tmp_path}"]'
    needed = root._needed(write_script(tmp_path / "python", f"echo '{named}'"))
    assert there in needed
    assert not {tmp_path / "absent.so", tmp_path} & set(needed)


def test_archive_is_world_readable(archive: Path) -> None:
    assert [path.stat().st_mode & 0o777 for path in archive.parent.iterdir()] == [0o644, 0o644]


@pytest.mark.parametrize("length", [0, 5, 63, 64, 100, 64 + 56])
def test_truncated_file(tmp_path: Path, length: int) -> None:
    """The program header table is missing or incomplete."""
    file = tmp_path / "library.so"
    file.write_bytes(interpreter().read_bytes()[:length])
    assert elf.segments(file) == ()
    assert elf.loader_of(file) is None
    assert elf.loaded(file) == file.read_bytes()


@pytest.mark.parametrize("start", [1 << 40, (1 << 64) - 1])
def test_table_beyond_the_end_of_the_file(tmp_path: Path, start: int) -> None:
    header = bytearray(interpreter().read_bytes()[:4096])
    struct.pack_into("<Q", header, 32, start)
    file = tmp_path / "library.so"
    file.write_bytes(header)
    assert elf.segments(file) == ()
