"""Parsers of user input: catalog and rules, patches and mails, images, modules, caches."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path, PurePosixPath

from conformance.allowed_reports.condition import Condition, ConditionError, KernelContext
from conformance.allowed_reports.rules import Allowed, RuleError
from conformance.results.case_result import Report
from conformance.results.errors import ReportError
from conformance.results.frozen import FrozenList
from kernels import kconfig
from kernels.build.bundled_modules import ModulesDirectory
from kernels.build.image import release_of
from kernels.build.ko_file import modinfo, read_module
from kernels.catalog import catalog, flavours
from kernels.catalog.patch import ENCODING
from kernels.errors import UserMistake
from kernels.lab_job import PARAMETERS, LabJob
from kernels.patches import series
from kernels.patches.applying import touched
from kernels.patches.diff import Damaged, Diff
from tests.fuzz.target import Target, on_file
from vm.qemu import elf
from vm.snapshots.files import SCHEMA, Snapshots

ROOT = Path(__file__).parents[2]
CONTEXT = KernelContext("6.12.117", "6.12", "debug", frozenset({"persist"}))
TODAY = date(2026, 11, 1)
REPORTS = (
    Report("warn", "WARNING: CPU: 0 PID: 7 at a.c:1 b+0x1/0x2", "warn:a/b/c", ("a", "b", "c")),
    Report("panic", "Kernel panic - not syncing: x", "panic:a", ("a",)),
)
TOML = (
    *(b"[[allow]]\n", b"[source]\n", b"kind", b"expires = 2027-06-30\n"),
    *(b"'''", b'"""', b" = ", b"release >= ", b"{}"),
)
MAIL = (
    *(b"From x@y Mon Nov 20 10:00:00 2026\n", b"Subject: [PATCH v2 1/3] x\n", b"\n\n"),
    *(b"Content-Type: text/plain; charset=", b"Content-Transfer-Encoding: base64\n", b"=?utf-8?b?"),
    *(b"--- a/x\n", b"+++ b/x\n", b"@@ -1 +1 @@\n", b"diff --git a/x b/x\n", b"rename from "),
    *(b"new file mode 120000\n", b"--- /etc/passwd\n", b"a/../../x", b"GIT binary patch"),
    b"\\ No newline at end of file",
)


def file_targets(scratch: Path) -> tuple[Target, ...]:
    """Parsers of files; each has a directory in ``scratch``."""
    mistakes = (UserMistake,)
    wrong = (RuleError,)

    def file(path: str, read: Callable[[Path], None]) -> Callable[[bytes], None]:
        return on_file(scratch / path, read)

    return (
        Target("catalog", file("catalog/6.12.toml", _catalog), _entries, mistakes, TOML),
        Target("flavour", file("flavours/debug.toml", _flavour), _flavours, mistakes, TOML),
        Target("allowed", file("allowed/reports.toml", _allowed), _rules, wrong, TOML),
        Target("condition", _condition, _conditions, (ConditionError,)),
        Target("fragment", _fragment, _fragments),
        Target("patch", file("patches/some.patch", _patch), _patches, mistakes, MAIL),
        Target("diff", _diff, _diffs, (Damaged,), MAIL),
        Target("image", file("image/bzImage", _image), _images, mistakes),
        Target("module", file("lib/modules/6.12/some.ko", _module), _modules, mistakes),
        Target("lab job", file("lab/job.json", _lab_job), _lab_jobs, mistakes),
        Target("frozen", file("frozen/list.txt", _frozen), _frozen_lists, (ReportError,)),
        Target("program", file("program/program", _program), _programs),
        Target("snapshot", file("states/key/record.json", _record), _records),
    )


def _lab_job(file: Path) -> None:
    found = LabJob.read(file)
    assert found.timeout_s > 0
    assert found.parameters.keys() <= set(PARAMETERS)


def _lab_jobs() -> list[bytes]:
    return [(ROOT / "examples" / "ci" / "kernelci" / "job.json").read_bytes()]


def _frozen(file: Path) -> None:
    found = FrozenList.read(file)
    file.write_text(found.text)
    assert FrozenList.read(file) == found


def _frozen_lists() -> list[bytes]:
    programs = {"write.a": frozenset({"0" * 12, "1" * 12}), "write.b": frozenset[str]()}
    return [FrozenList("0.1.0", programs).text.encode()]


def _catalog(file: Path) -> None:
    # A variant inherits from the entry.
    (file.parent / "variant.toml").write_text('name = "variant"\nof = "6.12"\n')
    found = catalog.load_catalog(file.parent)
    for entry in found.entries.values():
        path = PurePosixPath(entry.kernel_id)
        assert len(path.parts) == 1
        assert path.name not in (".", "..")
        entry.digest()
        entry.abi_for("6.12.117")
    found.find("6.12")


def _entries() -> list[bytes]:
    return [(catalog.CATALOG / name).read_bytes() for name in ("6.12.toml", "5.18.toml")]


def _flavour(file: Path) -> None:
    (file.parent / "debug.config").write_text("CONFIG_KASAN=y\n")
    flavours.flavour("debug", file.parent)


def _flavours() -> list[bytes]:
    return [file.read_bytes() for file in sorted(flavours.FLAVOURS.glob("*.toml"))]


def _allowed(file: Path) -> None:
    Allowed.load(TODAY, file.parent).excuse(CONTEXT, "format.array_length", REPORTS)


def _rules() -> list[bytes]:
    small = b"[[allow]]\nkind = 'warn'\nfingerprint = 'warn:a/b'\npattern = 'WARNING: .*'\n"
    small += b"case = 'format.array_length'\nwhen = 'release >= 6.1 and flavour != debug'\n"
    small += b"reason = 'r'\nurl = 'https://lore.kernel.org/r/1'\nexpires = 2027-06-30\n"
    return [small, small.replace(b"fingerprint", b"#") + small]


def _condition(data: bytes) -> None:
    Condition.parse(data.decode("utf-8", "surrogateescape")).holds(CONTEXT)


def _conditions() -> list[bytes]:
    return [b"release >= 6.1 and flavour != debug", b"switch == persist", b"profile == 6.12"]


def _fragment(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    kconfig.malformed(text)
    merged = kconfig.merge([text])
    # Merging is idempotent and loses nothing.
    assert kconfig.merge(["\n".join(merged)]) == merged or "\r" in text
    kconfig.lost(merged, text)


def _fragments() -> list[bytes]:
    return [file.read_bytes() for file in sorted(kconfig.FRAGMENTS.glob("*.config"))]


def _patch(file: Path) -> None:
    for patch in series.read(file).patches:
        for name in touched(patch):
            path = PurePosixPath(name)
            assert not path.is_absolute()
            assert ".." not in path.parts


def _patches() -> list[bytes]:
    files = sorted((ROOT / "fixtures" / "patches").iterdir())
    plain = [file.read_bytes() for file in files if file.name != "README"]
    return [*plain, gzip.compress(plain[0])]


def _diff(data: bytes) -> None:
    text = Diff(data.decode(**ENCODING)).text
    # Parsing is idempotent.  (Of several CR before a line end one is removed.)
    assert "\r" in text or Diff(text).text == text


def _diffs() -> list[bytes]:
    return [data for data in _patches() if not data.startswith(b"\x1f\x8b")]


def _image(file: Path) -> None:
    release = release_of(file)
    assert "/" not in release
    assert release.isprintable()


def _images() -> list[bytes]:
    header = bytearray(0x280)
    header[0x1F1] = 1
    header[0x202:0x208] = b"HdrS\x0f\x02"
    header[0x20E:0x210] = (0x80).to_bytes(2, "little")
    header[0x236] = 1
    image = bytes(header) + b"6.12.117 (builder@host) #1 SMP\0"
    return [image.ljust(2 * 512, b"\0")]


def _module(file: Path) -> None:
    modinfo(file.read_bytes(), "depends")
    ModulesDirectory(file.parents[3], "6.12").in_load_order(["some"])
    assert "/" not in read_module(file).name


def _modules() -> list[bytes]:
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 1, 62) + bytes(44)
    info = b"\0name=some\0depends=other\0vermagic=6.12 SMP preempt\0"
    return [header + info]


def _program(file: Path) -> None:
    elf.loaded(file)
    elf.loader_of(file)


def _programs() -> list[bytes]:
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x400000, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 200, 200, 4096)
    interpreter = struct.pack("<IIQQQQQQ", 3, 4, 176, 0, 0, 12, 12, 1)
    return [header + load + interpreter + b"/lib/ld.so\0\0" + bytes(100)]


def _record(file: Path) -> None:
    file.with_name("state").write_bytes(b"state")
    Snapshots(file.parents[1]).find("key")


def _records() -> Sequence[bytes]:
    record = {"schema": SCHEMA, "size": 5, "sha256": "0" * 64, "info": {"boot_id": "x"}}
    return [json.dumps(record).encode()]
