"""Read a patch file of the user: a diff, mails with a series, or a semantic patch."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from host.files import read_given
from kernels.catalog.patch import ENCODING, Patch
from kernels.errors import BrokenFile
from kernels.patches import mail
from kernels.patches.diff import Diff
from kernels.patches.mail import Mail

# `fix.cocci` or `fix.cocci:kernel/trace,include/linux`.
_SEMANTIC = re.compile(r"(.+\.cocci)(?::(.+))?")
# Bytes; a compressed file can expand a thousandfold.
_LONGEST = 64 << 20
_GZIP = b"\x1f\x8b"
# Patches; the longest series of Linux have some hundreds.
_LONGEST_SERIES = 10_000
# "fix.v2.mbox.gz" is named "fix.v2".
_SUFFIXES = {".gz", ".mbox", ".mbx", ".patch", ".diff", ".eml", ".cocci"}


class Series(Struct, frozen=True):
    """The patches of one file in order of application, and notes for the user."""

    patches: tuple[Patch, ...]
    notes: tuple[str, ...] = ()


def file_of(given: str) -> str:
    """The name of the file, without the places of a semantic patch."""
    semantic = _SEMANTIC.fullmatch(given)
    return semantic[1] if semantic else given


def stem(given: Path) -> str:
    """The name that a file adds to a kernel id."""
    path = Path(file_of(str(given)))
    while path.suffix in _SUFFIXES and path.stem:
        path = path.with_suffix("")
    return path.name


def read(given: Path) -> Series:
    """The patches of a file.  Raises BrokenFile."""
    if semantic := _SEMANTIC.fullmatch(str(given)):
        return _semantic(Path(semantic[1]), semantic[2])
    data = _bytes(given)
    try:
        return _mailed(given, data) if mail.is_mail(data) else _plain(given, data)
    except ValueError as error:
        hint = "send or save it again without changes: git format-patch, or the raw mail"
        raise BrokenFile(given, str(error), hint) from error


def _bytes(path: Path) -> bytes:
    try:
        data = read_given(path)
        if data.startswith(_GZIP):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(_LONGEST + 1)
        if len(data) > _LONGEST:
            raise OSError(None, f"holds more than {_LONGEST >> 20} MiB")
        return data
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BrokenFile(path, why, "name a readable file") from error


def _semantic(path: Path, places: str | None) -> Series:
    text = _bytes(path).decode(**ENCODING)
    if "@@" not in text:
        raise BrokenFile(path, "is no semantic patch: it has no @@", "write it for spatch(1)")
    named = tuple(place.strip("/") for place in places.split(",")) if places else ()
    for place in named:
        if not place or ".." in Path(place).parts:
            why = f"{place!r} is no directory of a source tree"
            raise BrokenFile(path, why, "name one as kernel/trace")
    return Series((Patch(path.name, text, file=path, semantic=True, places=named),))


def _plain(path: Path, data: bytes) -> Series:
    text = Diff(data.decode(**ENCODING)).text
    if not text:
        what = "is no patch: it has neither a diff nor a mail with one"
        raise BrokenFile(path, what, "create it with git diff, git format-patch or diff -ru")
    return Series((Patch(path.name, text, file=path),))


def _mailed(path: Path, data: bytes) -> Series:
    """The newest version of the series in a file of mails, complete and in order."""
    found = list(mail.mails(data))
    # A cover letter may contain a diff to the last version.
    with_diff = [each for each in found if each.diff and each.number != 0]
    patches = [each for each in with_diff if each.tagged] or with_diff
    if not patches:
        replies = " except replies" if any(each.reply for each in found) else ""
        what = f"is no patch: none of its {len(found)} mails{replies} has a diff"
        raise BrokenFile(path, what, "save the mails with [PATCH] in their subjects")
    notes = []
    newest = max(each.version for each in patches)
    if older := sorted({f"v{each.version}" for each in patches if each.version < newest}):
        notes.append(f"{path.name}: v{newest} is used, {' and '.join(older)} ignored")
    chosen = [each for each in patches if each.version == newest]
    if len(found) == 1:
        # One of several files of a series: completeness is up to the user.
        notes += [
            f"{path.name}: is {each.place} of its series" for each in chosen if (each.of or 1) > 1
        ]
    elif any(each.number is not None for each in chosen):
        covers = [each for each in found if each.tagged and each.version == newest]
        chosen, duplicates = _numbered(path, chosen, covers)
        notes += duplicates
    if flowed := [each for each in chosen if each.flowed]:
        notes.append(
            f"{path.name}: {_named(flowed)} was sent as format=flowed, "
            "which may have changed the patch's white space"
        )
    return Series(tuple(_patch(path, each, len(chosen)) for each in chosen), tuple(notes))


def _numbered(
    path: Path, mails: Sequence[Mail], tagged: Sequence[Mail]
) -> tuple[list[Mail], list[str]]:
    """Patches 1 to n of a series, each once.  Raises BrokenFile."""
    single = [each for each in mails if each.number is None]
    lengths = sorted(
        {each.of for each in (*mails, *tagged) if each.of is not None and not each.reply}
    )
    if single or len(lengths) > 1:
        several = [f"of {length}" for length in lengths] + [repr(each.title) for each in single]
        what = f"has patches of several series: {', '.join(several)}"
        raise BrokenFile(path, what, "give each series a file and --patch of its own")
    length = lengths[0]
    if length > _LONGEST_SERIES:
        what = f"has patches of a series of {length}, more than {_LONGEST_SERIES}"
        raise BrokenFile(path, what, "correct the numbers in the subjects")
    notes: list[str] = []
    last: dict[int, Mail] = {}
    for each in mails:
        assert each.number is not None
        before = last.get(each.number)
        if before is not None and before.diff != each.diff:
            notes.append(f"{path.name}: {each.place} occurs more than once, the last one is used")
        last[each.number] = each
    if missing := [number for number in range(1, length + 1) if number not in last]:
        version = f"v{mails[0].version} " if mails[0].version > 1 else ""
        listed = ", ".join(f"{number}/{length}" for number in missing)
        hint = "save the whole thread, or renumber the patches if they are all"
        raise BrokenFile(path, f"lacks [PATCH {version}{listed}]", hint)
    return [last[number] for number in range(1, length + 1)], notes


def _named(mails: Sequence[Mail]) -> str:
    return ", ".join(each.place or repr(each.title) for each in mails)


def _patch(path: Path, each: Mail, count: int) -> Patch:
    name = f"{path.name} {each.place}".strip() if count > 1 else path.name
    return Patch(f"{name} ({each.title})" if each.title else name, each.diff, file=path)
