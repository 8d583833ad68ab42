"""Find the distribution's main archive in the host's apt sources, and use another suite of it.

apt reads two formats, deb822 stanzas (`*.sources`) and one-line entries (`*.list`); sources.list(5)
describes both.  All but the suite of an entry is kept, such as its keyring.
"""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from host.deadline import Deadline
from kernels.errors import SourceUnavailable
from kernels.tools import child_process

# Field name, in lower case, to value, which may have several lines.
Stanza = dict[str, str]

_ASK_S = 30.0
_FIELD = re.compile(r"^([A-Za-z-]+):(.*(?:\n[ \t].*)*)", re.MULTILINE)
_LINE = re.compile(
    r"^deb[ \t]+(?:\[(?P<options>[^\]]*)\][ \t]+)?(?P<uri>\S+)[ \t]+(?P<suite>\S+)"
    r"(?P<components>(?:[ \t]+[^#\s]+)+)",
    re.MULTILINE,
)
# Options of a line whose field has another name.
_FIELD_OF = {"arch": "architectures", "lang": "languages", "target": "targets"}


def path(state: Path) -> Path:
    """The sources file of a private apt state."""
    return state / "uevt.sources"


def write(state: Path, suite: str) -> None:
    """Give a private apt state one source: the host's main archive, in that suite.

    Raises SourceUnavailable if no configured source is that archive.
    """
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    main = main_archive(configured(), codename)
    if main is None:
        release = codename or "of this system's release"
        raise SourceUnavailable(
            f"no apt source of this host has the suite {release}, whose archive has {suite}",
            f"add {suite} to this host's apt sources and run apt-get update",
        )
    changed = {**main, "suites": suite}
    text = "".join(f"{name}: {value}\n" for name, value in changed.items())
    path(state).write_text(text, encoding="utf-8")


def configured() -> tuple[Stanza, ...]:
    """All enabled binary package sources of the host's apt, as stanzas."""
    return tuple(stanza for file in _files() for stanza in parse(file))


def parse(file: Path) -> Iterator[Stanza]:
    """The enabled binary package sources in a file of either format."""
    text = file.read_text(encoding="utf-8", errors="replace")
    stanzas = _stanzas(text) if file.suffix == ".sources" else _lines(text)
    for stanza in stanzas:
        types = stanza.pop("types", "").split()
        if "deb" in types and stanza.get("enabled", "yes").lower() not in ("no", "false", "0"):
            yield {"types": "deb", **stanza}


def main_archive(stanzas: Sequence[Stanza], codename: str) -> Stanza | None:
    """The distribution's main archive.

    Third parties name suites after releases, too, but only the distribution has updates for one.
    """
    uris_of_updates = {
        uri
        for stanza in stanzas
        if f"{codename}-updates" in stanza.get("suites", "").split()
        for uri in stanza.get("uris", "").split()
    }
    found = [
        stanza
        for stanza in stanzas
        if codename in stanza.get("suites", "").split()
        and "main" in stanza.get("components", "").split()
    ]
    found.sort(key=lambda stanza: uris_of_updates.isdisjoint(stanza.get("uris", "").split()))
    return found[0] if found else None


def _files() -> list[Path]:
    wanted = ("LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d")
    deadline = Deadline(_ASK_S, "asking apt for its files of sources")
    output = child_process.answer(["apt-config", "shell", *wanted], deadline=deadline)
    places = dict(word.split("=", 1) for word in shlex.split(output))
    parts = Path(places.get("PARTS", "/nonexistent"))
    files = [Path(places.get("LIST", "/nonexistent")), *sorted(parts.glob("*"))]
    return [file for file in files if file.is_file() and file.suffix in (".list", ".sources")]


def _stanzas(text: str) -> Iterator[Stanza]:
    uncommented = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n[ \t]*\n", uncommented):
        fields = _FIELD.findall(paragraph)
        yield {name.lower(): value.lstrip(" \t").rstrip() for name, value in fields}


def _lines(text: str) -> Iterator[Stanza]:
    for line in _LINE.finditer(text):
        stanza = {"types": "deb", "uris": line["uri"], "suites": line["suite"]}
        stanza["components"] = " ".join(line["components"].split())
        for option in (line["options"] or "").split():
            name, _, value = option.partition("=")
            stanza[_FIELD_OF.get(name, name)] = value.replace(",", " ")
        yield stanza
