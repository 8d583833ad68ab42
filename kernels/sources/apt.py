"""Debian source packages through apt: as any user, and without changing /etc/apt.

The host's package lists come first.  If they are absent, stale or lack the package, a private apt
state in the store is filled from the host's apt sources, or from another suite of the same archive.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from host.deadline import Deadline
from host.progress import Progress, ticking
from kernels.catalog.entries import Source
from kernels.errors import MIB, SourceUnavailable
from kernels.sources import apt_suites
from kernels.sources.archives import unpack
from kernels.sources.offers import Offer
from kernels.store.store import Store
from kernels.tools import child_process, toolchain

TOOLS = ("apt-cache", "apt-config", "apt-get", "dpkg-deb", "setpriv", "tar", "xz")
# Compression to the program that tar needs.
_COMPRESSIONS = {"xz": "xz", "bz2": "bzip2", "gz": "gzip"}
UPDATE_S = 600.0
_FILES = ("Contents-deb", "Contents-deb-legacy")
# What lists and apt's cache of them take at most, in MiB.
LISTS_MIB = 200
DOWNLOAD_S = 1800.0
ASK_S = 60.0


def no_apt(source: Source) -> SourceUnavailable:
    """The error of a host without apt."""
    return SourceUnavailable(
        f"{source} is a Debian package, but this host has no apt",
        "test a built image (--image), or a release from a tarball (UEVT_TARBALLS)",
    )


class Listed(Struct, frozen=True):
    """One version of a package in the lists; `size` is in bytes."""

    package: str
    version: str
    size: int


class Apt(Struct, frozen=True):
    """apt with one state: the host's, or a private one."""

    options: tuple[str, ...]
    private: bool

    def listed(self, packages: Iterable[str]) -> tuple[Listed, ...]:
        """All versions of packages in the lists, the candidate (in apt's order) first.

        Raises TookTooLong.
        """
        names = sorted(set(packages))
        deadline = Deadline(ASK_S, "reading the package lists")
        output = child_process.answer(
            ["apt-cache", *self.options, "show", *names], deadline=deadline
        )
        found = []
        for stanza in output.split("\n\n"):
            fields = dict(re.findall(r"^(Package|Version|Size): (.+)$", stanza, re.MULTILINE))
            # A stanza without Size is an installed package, not an offer.
            if fields.get("Package") in names and "Version" in fields and "Size" in fields:
                found.append(Listed(fields["Package"], fields["Version"], int(fields["Size"])))
        return tuple(found)

    def run(self, *arguments: str, cwd: Path, deadline: Deadline, progress: Progress) -> str:
        """Run apt-get and return its errors; "" if it succeeded."""
        options = list(self.options)
        if os.geteuid() == 0:
            # root's downloads run as _apt, which may not be able to reach the user's cache.
            options += ["-o", "APT::Sandbox::User=root"]
        lines: list[str] = []
        status = child_process.run(
            ["apt-get", "-q", *options, *arguments],
            cwd=cwd,
            deadline=deadline,
            on_line=lines.append,
            on_tick=ticking(progress, deadline),
        )
        errors = [line for line in lines if line.startswith("E:")] or lines[-3:]
        return " ".join(errors) or f"exit status {status}" if status else ""


def host_apt(store: Store) -> Apt:
    """apt with the host's lists."""
    return Apt(_cache_options(store.apt / "host"), private=False)


def private_apt(store: Store, suite: str | None) -> Apt:
    """apt with private lists in the store, for a suite if the host's sources lack it."""
    state = _state(store, suite)
    options = [f"-oDir::State={state}", f"-oDir::State::lists={state}/lists"]
    options += [f"-oDir::State::status={state}/status", "-oAcquire::Languages=none"]
    # apt-file adds lists of all files, which take longer than the others.
    options += [f"-oAcquire::IndexTargets::deb::{each}::DefaultEnabled=false" for each in _FILES]
    if suite is not None:
        options += [f"-oDir::Etc::sourcelist={apt_suites.path(state)}", "-oDir::Etc::sourceparts=-"]
    return Apt((*options, *_cache_options(state / "cache")), private=True)


def known(sources: Collection[Source], store: Store) -> dict[Source, tuple[str, ...]]:
    """The versions of some sources in the lists on this host, without network access."""
    found = _known_to(host_apt(store), sources)
    unseen = [source for source in sources if source not in found]
    for suite in {source.suite for source in unseen}:
        if (_state(store, suite) / "lists").is_dir():
            of_suite = [source for source in unseen if source.suite == suite]
            found |= _known_to(private_apt(store, suite), of_suite)
    return found


class DebianPackage:
    """A source package of the catalog: an `Origin`."""

    def __init__(self, source: Source, store: Store, progress: Progress) -> None:
        self._source = source
        self._store = store
        self._progress = progress
        # apt's errors in the last update.
        self._failure = ""

    def at_hand(self) -> tuple[Offer, ...]:
        """Offers of the host's lists."""
        return self._offers(host_apt(self._store))

    def updated(self) -> tuple[Offer, ...]:
        """Offers of the archive today.  Raises StoreFull, SourceUnavailable, TookTooLong."""
        offers = self._offers(self._updated())
        if not offers:
            # Of lists that do not fit on the disk, apt keeps nothing and finds nothing.
            self._store.require_space(LISTS_MIB, "the package lists")
        return offers

    def unavailable(self) -> SourceUnavailable:
        """The error if no archive offers it."""
        why = f" ({self._failure})" if self._failure else ""
        return SourceUnavailable(
            f"this host's package sources do not offer {self._source}{why}",
            "configure a reachable apt source that has it, or test a built image instead",
        )

    def _offers(self, apt: Apt) -> tuple[Offer, ...]:
        return tuple(
            Offer(
                listed.package,
                listed.version,
                # The package and its content exist at the same time.
                fetch_mib=2 * (listed.size // MIB + 1),
                fetch=partial(self._fetch, apt, listed),
            )
            for listed in apt.listed([self._source.package])
        )

    def _updated(self) -> Apt:
        state = _state(self._store, self._source.suite)
        for directory in ("lists/partial", "cache/archives/partial"):
            (state / directory).mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        if self._source.suite is not None:
            apt_suites.write(state, self._source.suite)
        apt = private_apt(self._store, self._source.suite)
        deadline = Deadline(UPDATE_S, f"asking the package sources about {self._source.package}")
        # Failures of single sources are ignored: the offers show whether they matter.
        self._failure = apt.run("update", cwd=state, deadline=deadline, progress=self._progress)
        return apt

    def _fetch(self, apt: Apt, listed: Listed, work: Path) -> Path:
        """Download a package and extract the source's tarball."""
        phase = f"fetching {listed.package} {listed.version} ({listed.size // MIB} MiB)"
        failure = self._download(apt, listed, work, phase)
        if failure and not apt.private:
            # Old lists name files that the archive no longer has: update them.
            failure = self._download(self._updated(), listed, work, phase)
        packages = list(work.glob("*.deb"))
        if failure or not packages:
            raise SourceUnavailable(
                f"{phase} failed: {failure or 'apt-get left no package'}",
                "check the network and this host's apt sources, then try again",
            )
        return self._extract(packages[0], listed, work / "content")

    def _download(self, apt: Apt, listed: Listed, work: Path, phase: str) -> str:
        wanted = f"{listed.package}={listed.version}"
        deadline = Deadline(DOWNLOAD_S, phase)
        return apt.run("download", wanted, cwd=work, deadline=deadline, progress=self._progress)

    def _extract(self, package: Path, listed: Listed, content: Path) -> Path:
        argv = ["dpkg-deb", "-x", str(package), str(content)]
        what = f"unpacking {listed.package} {listed.version}"
        unpack(argv, what, self._store, self._progress)
        package.unlink()
        return _tarball(content / "usr/src", listed.package)


def _tarball(directory: Path, package: str) -> Path:
    """The source in a package's files: Debian has it there, Ubuntu in a directory of its own.

    Raises SourceUnavailable, MissingTool.
    """
    for place in (directory, directory / package):
        for compression, tool in _COMPRESSIONS.items():
            tarball = place / f"{package}.tar.{compression}"
            # Ubuntu's link from here to there is absolute in some releases.
            if tarball.is_file() and not tarball.is_symlink():
                toolchain.require([tool])
                return tarball
    raise SourceUnavailable(
        f"the package {package} has no {package}.tar.xz below usr/src",
        "use another source: a tree with --tree DIR, or a tarball in UEVT_TARBALLS",
    )


def _known_to(apt: Apt, sources: Collection[Source]) -> dict[Source, tuple[str, ...]]:
    listed = apt.listed(source.package for source in sources)
    versions = {
        source: tuple(one.version for one in listed if one.package == source.package)
        for source in sources
    }
    return {source: offered for source, offered in versions.items() if offered}


def _state(store: Store, suite: str | None) -> Path:
    return store.apt if suite is None else store.apt / "suites" / suite


def _cache_options(directory: Path) -> tuple[str, ...]:
    """Keep apt's cache of the lists: it takes a second to build, and some images disable it."""
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
    return (
        f"-oDir::Cache={directory}",
        "-oDir::Cache::pkgcache=pkgcache.bin",
        "-oDir::Cache::srcpkgcache=",
    )
