"""Source trees from a Debian source package, through apt as any user, without touching /etc/apt.

The host's own package lists are asked first.  Where they are absent, stale or lack the package,
a private apt state in the store is filled from the sources that the host's apt is configured
with; nothing outside the store is changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernels import child, tools
from kernels.catalog import KernelEntry
from kernels.deadline import Deadline
from kernels.errors import MIB, BuildFailed, SourceUnavailable, UnknownRevision
from kernels.progress import Progress, Step
from kernels.store import Store

SOURCE_TOOLS = ("apt-cache", "apt-get", "dpkg-deb", "setpriv", "tar", "xz")
# A tree that root unpacks belongs to root, not to whoever owned it where it was packed.
_OURS = ("--no-same-owner",)
UPDATE_S = 600.0
DOWNLOAD_S = 1800.0
UNPACK_S = 1800.0


@dataclass(frozen=True, slots=True)
class Offer:
    """A source package in one version, as some apt state offers it; `size` is in bytes."""

    package: str
    version: str
    size: int
    apt: Apt


@dataclass(frozen=True, slots=True)
class Apt:
    """apt with one state: the host's own, or a private one given by options."""

    options: tuple[str, ...] = ()

    def offers(self, package: str) -> tuple[Offer, ...]:
        """All versions of a package in the lists, the candidate (as apt orders them) first."""
        said = subprocess.run(
            ["apt-cache", *self.options, "show", package],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=child.environment(),
        )
        offers = []
        for stanza in said.stdout.split("\n\n"):
            fields = dict(re.findall(r"^(Package|Version|Size): (.+)$", stanza, re.MULTILINE))
            # Without a Size it is what dpkg remembers of an installed package, not an offer.
            if fields.get("Package") == package and "Version" in fields and "Size" in fields:
                offers.append(Offer(package, fields["Version"], int(fields["Size"]), self))
        return tuple(offers)

    def run(self, *arguments: str, cwd: Path, deadline: Deadline, tick: Callable[[], None]) -> str:
        """Run apt-get and return what it said if it failed, else ""."""
        options = list(self.options)
        if os.geteuid() == 0:
            # root's downloads run as _apt, which need not be able to reach the user's cache.
            options += ["-o", "APT::Sandbox::User=root"]
        lines: list[str] = []
        status = child.run(
            ["apt-get", "-q", *options, *arguments],
            cwd=cwd,
            deadline=deadline,
            on_line=lines.append,
            on_tick=tick,
        )
        errors = [line for line in lines if line.startswith("E:")] or lines[-3:]
        return " ".join(errors) or f"exit status {status}" if status else ""


class SourceTrees:
    """The unpacked source trees of a store."""

    def __init__(self, store: Store, progress: Progress) -> None:
        self._store = store
        self._progress = progress

    def path(self, package: str, revision: str, patches_digest: str) -> Path:
        """Where the tree of that revision and those patches is once unpacked."""
        suffix = f"+{patches_digest[:12]}" if patches_digest else ""
        return self._store.sources / f"{package}_{revision}{suffix}"

    def resolve(self, entry: KernelEntry) -> Offer:
        """The exact version to build: the one asked for, else the candidate.

        A revision asked for matches a version that it is, or that it is the start of up to
        a separator ("6.12.115-2" is 6.12.115-2~deb12u1).
        Raises MissingTool, SourceUnavailable, UnknownRevision.
        """
        tools.require(SOURCE_TOOLS)
        package = entry.source.package
        offered = Apt().offers(package)
        chosen = _choose(offered, entry.revision)
        if chosen is None:
            offered = self._private_apt(package).offers(package) or offered
            chosen = _choose(offered, entry.revision)
        if chosen is not None:
            return chosen
        if offered and entry.revision is not None:
            raise UnknownRevision(package, entry.revision, [offer.version for offer in offered])
        raise SourceUnavailable(
            f"the package sources of this machine do not offer {package}",
            "configure an apt source that has it and is reachable, or test a built image instead",
        )

    def obtain(self, entry: KernelEntry, offer: Offer) -> Path:
        """The patched tree of an offer: at once if in the store, else downloaded and unpacked.

        Call with the store locked.  Raises StoreFull, SourceUnavailable, BuildFailed when a
        patch does not apply.
        """
        tree = self.path(offer.package, offer.version, entry.patches_digest)
        if tree.is_dir():
            return tree
        archive_mib = offer.size // MIB + 1
        self._store.require_space(
            # The package, the archive in it and the tree exist at the same time.
            2 * archive_mib + entry.needs.tree_mib,
            f"unpacking {offer.package} {offer.version}",
        )
        tree.parent.mkdir(exist_ok=True)
        with self._store.workspace(tree.name) as work:
            package = self._download(offer, work)
            fresh = self._unpack(offer, package, work)
            self._patch(entry, fresh)
            fresh.rename(tree)
        return tree

    def _download(self, offer: Offer, work: Path) -> Path:
        phase = f"fetching {offer.package} {offer.version} ({offer.size // MIB} MiB)"
        failure = self._try_download(offer, work, phase)
        if failure and not offer.apt.options:
            # Lists older than the archive name files that are gone: ask anew.
            offer = self._refreshed(offer)
            failure = self._try_download(offer, work, phase)
        packages = list(work.glob("*.deb"))
        if failure or not packages:
            raise SourceUnavailable(
                f"{phase} failed: {failure or 'apt-get left no package'}",
                "check the network and this machine's apt sources, then try again",
            )
        return packages[0]

    def _try_download(self, offer: Offer, work: Path, phase: str) -> str:
        deadline = Deadline(DOWNLOAD_S, phase)
        return offer.apt.run(
            "download",
            f"{offer.package}={offer.version}",
            cwd=work,
            deadline=deadline,
            tick=self._ticker(deadline),
        )

    def _refreshed(self, offer: Offer) -> Offer:
        anew = self._private_apt(offer.package).offers(offer.package)
        return _choose(anew, offer.version) or offer

    def _unpack(self, offer: Offer, package: Path, work: Path) -> Path:
        deadline = Deadline(UNPACK_S, f"unpacking {offer.package} {offer.version}")
        content = work / "content"
        fresh = work / "tree"
        fresh.mkdir()
        archive = content / "usr" / "src" / f"{offer.package}.tar.xz"
        for argv in (
            ["dpkg-deb", "-x", str(package), str(content)],
            ["tar", "-xJf", str(archive), "-C", str(fresh), "--strip-components=1", *_OURS],
        ):
            said: list[str] = []
            if child.run(
                argv, deadline=deadline, on_line=said.append, on_tick=self._ticker(deadline)
            ):
                self._store.require_space(1, deadline.what)
                raise SourceUnavailable(
                    f"{deadline.what} failed: {' '.join(said[-3:])}",
                    "try again; if it fails the same way, report it with this line",
                )
        package.unlink()
        shutil.rmtree(content)
        return fresh

    def _patch(self, entry: KernelEntry, tree: Path) -> None:
        for name, text in entry.patches:
            said = subprocess.run(
                ["patch", "-p1", "--batch", "--forward", "--fuzz=0"],
                cwd=tree,
                input=text,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            if said.returncode:
                self._store.logs.mkdir(exist_ok=True)
                log = self._store.logs / f"patch-{name}.log"
                log.write_text(said.stdout + said.stderr, encoding="utf-8")
                raise BuildFailed(f"applying patch {name}", log, said.stdout.splitlines()[-5:])

    def _private_apt(self, package: str) -> Apt:
        """apt with lists of its own below the store, filled from the host's configured sources."""
        state = self._store.apt
        for directory in ("lists/partial", "cache/archives/partial"):
            (state / directory).mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        apt = Apt(
            (
                f"-oDir::State={state}",
                f"-oDir::State::lists={state}/lists",
                f"-oDir::State::status={state}/status",
                f"-oDir::Cache={state}/cache",
            )
        )
        deadline = Deadline(UPDATE_S, f"asking the package sources about {package}")
        # A failure of one source is not ours to judge: the offers show whether it mattered.
        apt.run("update", cwd=state, deadline=deadline, tick=self._ticker(deadline))
        return apt

    def _ticker(self, deadline: Deadline) -> Callable[[], None]:
        def tick() -> None:
            self._progress(Step(deadline.what, elapsed_s=deadline.elapsed, passing=True))

        return tick


def _choose(offered: tuple[Offer, ...], revision: str | None) -> Offer | None:
    if revision is None:
        return offered[0] if offered else None
    start = re.compile(re.escape(revision) + r"(?![0-9A-Za-z])")
    exact = [offer for offer in offered if offer.version == revision]
    begun = [offer for offer in offered if start.match(offer.version)]
    return next(iter(exact + begun), None)
