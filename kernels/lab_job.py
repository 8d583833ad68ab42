"""A job definition of KernelCI's pull labs: the image to test, and what to run on it.

A pull lab polls KernelCI for jobs, runs them where KernelCI cannot reach, and sends the results.
The form is that of kernelci-core's config/runtime/base/pull_labs.jinja2 and of its reader in
kernelci-pipeline's tools/example_pull_lab.py, as of 2026-11: ``artifacts`` (URLs of kernel and
modules), ``tests`` (id, type, timeout_s, parameters), ``environment`` (arch), ``integrity``
(sha256).  KernelCI has no test type for this suite: ``user_events`` and the names of its parameters
are ours, written like those of type ltp.  ``subset`` and the commands around a test are refused,
``rootfs``, ``console``, ``requirements`` and ``callback`` are not used.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from host.arch import ARCH
from host.deadline import Deadline
from host.files import digest_of, read_given
from host.progress import Progress
from host.text import one_line
from kernels.errors import BrokenFile, SourceUnavailable, TookTooLong
from kernels.sources.download import Broken, Download, NotThere
from kernels.tools import child_process

TYPE = "user_events"
PARAMETERS = ("tier", "k", "frozen")
"""Options of `uevt run` that ``parameters`` may have: ``tier=full k='write or status'``."""
TIMEOUT_S = 3600
"""Seconds of a test without ``timeout_s``."""
_MOST_S = 10**9

_REFUSED = ("subset", "pre-commands", "post-commands")
_SHA256 = re.compile("[0-9a-f]{64}")
_MODULES = "name a tar archive of lib/modules/RELEASE"
_Kind = TypeVar("_Kind")


class Artifact(Struct, frozen=True):
    """A file of a job: its URL or path, and its digest if the job has one."""

    name: str
    address: str
    sha256: str = ""


class LabJob(Struct, frozen=True):
    """The part of a job definition that concerns this suite; ``others`` are the ids of other tests.

    ``timeout_s`` is for download and run together.
    """

    file: Path
    test: str
    kernel: Artifact
    modules: Artifact | None
    parameters: Mapping[str, str]
    timeout_s: int
    others: tuple[str, ...] = ()

    @classmethod
    def read(cls, file: Path) -> LabJob:
        """Read a job definition.  Raises BrokenFile, naming the key."""
        reader = _Reader(file)
        job = reader.document()
        arch = reader.get(reader.get(job, "environment", dict, {}), "arch", str, ARCH)
        if arch != ARCH:
            raise reader.wrong("environment.arch", f"is {arch!r}", f"this suite judges {ARCH} only")
        tests = reader.tests(job)
        ours = [each for each in tests if each.get("type") == TYPE]
        if len(ours) != 1:
            kinds = ", ".join(sorted({str(each.get("type")) for each in tests})) or "none"
            hint = f'name this suite once: {{"id": "…", "type": "{TYPE}"}}'
            raise reader.wrong("tests", f"has {len(ours)} of type {TYPE} (types: {kinds})", hint)
        others = tuple(str(each.get("id")) for each in tests if each is not ours[0])
        return cls(file, *reader.test(ours[0], job), others)

    def fetch(self, artifact: Artifact, directory: Path, left: Deadline, tell: Progress) -> Path:
        """The file of an artifact, downloaded into a directory unless it is a local one.

        Raises BrokenFile for a wrong digest or address, SourceUnavailable for a failed download.
        """
        where = f"artifacts.{artifact.name}"
        try:
            parts = urlsplit(artifact.address)
        except ValueError as error:
            raise BrokenFile(self.file, f"{where}: {error}", "write a URL or a path") from error
        match parts.scheme:
            case "":
                path = self.file.parent / artifact.address
            case "file":
                path = Path(unquote(parts.path))
            case "http" | "https":
                name = Path(unquote(parts.path)).name.strip(".") or artifact.name
                path = directory / artifact.name / name
                path.parent.mkdir()
                self._download(artifact, path, left, tell)
            case other:
                hint = "write a path, or a URL of file, http or https"
                raise BrokenFile(self.file, f"{where}: {other} is not supported", hint)
        self._check(artifact, path)
        return path

    def _download(self, artifact: Artifact, path: Path, left: Deadline, tell: Progress) -> None:
        limit = left.child(left.remaining(), f"download of {artifact.name}")
        try:
            Download(artifact.address, path, limit, tell).run()
        except NotThere as error:
            what = f"artifacts.{artifact.name}: {artifact.address}: {error}"
            raise BrokenFile(self.file, what, "ask KernelCI for the job again") from error
        except Broken as error:
            raise SourceUnavailable(f"{artifact.address}: {error}", "run the job again") from error

    def _check(self, artifact: Artifact, path: Path) -> None:
        where = f"artifacts.{artifact.name}"
        try:
            # Reading a pipe or a device might never end.
            if path.exists() and not path.is_file():
                raise BrokenFile(self.file, f"{where}: {path}: is no file", "name a file")
            found = digest_of(path)
        except (OSError, ValueError) as error:
            what = f"{where}: {path}: {getattr(error, 'strerror', None) or error}"
            raise BrokenFile(self.file, what, "name a file that exists") from error
        if artifact.sha256 and found != artifact.sha256:
            what = f"{where}: has sha256 {found}, not {artifact.sha256}"
            raise BrokenFile(self.file, what, "fetch it again: it is another file, or damaged")


def unpack_modules(archive: Path, directory: Path, left: Deadline) -> Path:
    """Unpack an archive of lib/modules/RELEASE into a new directory; the directory.

    tar itself refuses entries outside of it.  Raises BrokenFile, TookTooLong.
    """
    directory.mkdir()
    output: list[str] = []
    status = child_process.run(
        ["tar", "-xf", str(archive), "-C", str(directory), "--no-same-owner"],
        deadline=left,
        on_line=output.append,
    )
    if left.expired:
        raise TookTooLong(left.what, left.seconds)
    if status:
        why = one_line(" ".join(output[-3:])) or f"tar ended with {status}"
        raise BrokenFile(archive, f"cannot be unpacked: {why}", _MODULES)
    if not any((directory / place / "lib/modules").is_dir() for place in ("", "usr")):
        raise BrokenFile(archive, "has no lib/modules/RELEASE", _MODULES)
    return directory


class _Reader:
    """Reads a job key by key; methods raise BrokenFile."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def wrong(self, where: str, what: str, hint: str) -> BrokenFile:
        """The error about a place in the file."""
        return BrokenFile(self._file, f"{where}: {what}", hint)

    def document(self) -> dict[str, Any]:
        """The whole file."""
        hint = "name a job definition of a pull lab, which is JSON"
        try:
            job = json.loads(read_given(self._file))
        except OSError as error:
            raise BrokenFile(self._file, error.strerror or str(error), hint) from error
        except (ValueError, RecursionError) as error:
            raise BrokenFile(self._file, f"is not JSON: {error}", hint) from error
        if not isinstance(job, dict):
            raise BrokenFile(self._file, "is not an object", hint)
        return job

    def get(self, table: dict[str, Any], key: str, kind: type[_Kind], default: _Kind) -> _Kind:
        """The value of a key, or its default."""
        value = table.get(key, default)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.wrong(key, f"is {value!r}", f"write a JSON {kind.__name__}")
        return value

    def tests(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        """All tests of the job."""
        tests = self.get(job, "tests", list, [])
        if not all(isinstance(each, dict) for each in tests):
            raise self.wrong("tests", "is not a list of objects", "write one object for each test")
        return tests

    def test(
        self, test: dict[str, Any], job: dict[str, Any]
    ) -> tuple[str, Artifact, Artifact | None, dict[str, str], int]:
        """Id, kernel, modules, parameters and seconds of our test."""
        for key in _REFUSED:
            if test.get(key):
                raise self.wrong(f"tests.{key}", "is not supported", "remove it: nothing runs it")
        kernel = self._artifact(job, "kernel")
        if kernel is None:
            raise self.wrong("artifacts.kernel", "is missing", "add the URL of a bzImage")
        seconds = self.get(test, "timeout_s", int, TIMEOUT_S)
        if not 0 < seconds <= _MOST_S:
            hint = f"write a number of seconds, 1 to {_MOST_S}"
            raise self.wrong("tests.timeout_s", f"is {seconds}", hint)
        id = self.get(test, "id", str, TYPE)
        return id, kernel, self._artifact(job, "modules"), self._parameters(test), seconds

    def _artifact(self, job: dict[str, Any], name: str) -> Artifact | None:
        address = self.get(self.get(job, "artifacts", dict, {}), name, str, "")
        digests = self.get(self.get(job, "integrity", dict, {}), "sha256", dict, {})
        digest = self.get(digests, name, str, "")
        if digest and not _SHA256.fullmatch(digest):
            hint = "write 64 hexadecimal digits"
            raise self.wrong(f"integrity.sha256.{name}", f"is {digest!r}", hint)
        return Artifact(name, address, digest) if address else None

    def _parameters(self, test: dict[str, Any]) -> dict[str, str]:
        text = self.get(test, "parameters", str, "")
        hint = f"write NAME=VALUE, with the names {', '.join(PARAMETERS)}"
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise self.wrong("tests.parameters", str(error), hint) from error
        found = {}
        for word in words:
            name, _, value = word.partition("=")
            if name not in PARAMETERS or not value:
                raise self.wrong("tests.parameters", f"{word!r} is no parameter", hint)
            found[name] = value
        return found
