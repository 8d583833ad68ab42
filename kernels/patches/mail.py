"""Decode mailed patches: one saved mail, or an mbox."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.policy import compat32

from msgspec import Struct

from kernels.catalog.patch import ENCODING
from kernels.patches.diff import Damaged, Diff

# The separator of an mbox has a time and a year.  git-mailsplit(1) checks both, mailbox.mbox
# neither: a commit message may contain a line that begins with "From ".
_FROM = re.compile(rb"^From (?=(\S[^\n]{0,300})$)", re.MULTILINE)
_DATED = re.compile(rb"\S.*\d\d:\d\d(?::\d\d)? .*\d{4}\s*")
_HEADER = re.compile(rb"[A-Za-z][A-Za-z0-9-]*:(?:[ \t]|\r?$)", re.MULTILINE)
_SUBJECT = re.compile(rb"^Subject:", re.MULTILINE | re.IGNORECASE)
_REPLY = re.compile(r"(?:re|aw|sv|antw|fwd?)(?:\[\d+\])?:", re.IGNORECASE)
_TAG = re.compile(r"\[([^\]]*\bPATCH[^\]]*)\]", re.IGNORECASE)
_VERSION = re.compile(r"v(\d+)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\b(\d+)/(\d+)\b")


class Mail(Struct, frozen=True):
    """One mail: `version`, `number` and `of` are those of its [PATCH vVERSION NUMBER/OF].

    `tagged` is whether the subject has such a tag, `title` is the subject without it.
    """

    title: str
    diff: str
    tagged: bool
    reply: bool
    flowed: bool
    version: int = 1
    number: int | None = None
    of: int | None = None

    @property
    def place(self) -> str:
        """The place in the series, such as "v2 1/3"."""
        version = f"v{self.version}" if self.version > 1 else ""
        number = f"{self.number}/{self.of}" if self.number is not None else ""
        return " ".join(part for part in (version, number) if part)


def is_mail(data: bytes) -> bool:
    """Whether a file begins as an mbox or as a saved mail."""
    data = data.lstrip()
    if data.startswith(b"From ") and next(_starts(data), None) == 0:
        return True
    headers = re.split(rb"\r?\n\r?\n", data, maxsplit=1)[0]
    return bool(_HEADER.match(headers) and _SUBJECT.search(headers))


def mails(data: bytes) -> Iterator[Mail]:
    """The mails of a file, in order.  Raises ValueError naming the one with a damaged diff."""
    starts = list(_starts(data))
    ends = [*starts[1:], len(data)]
    pairs = zip(starts, ends, strict=True) if starts else [(0, len(data))]
    for start, end in pairs:
        text = data[start:end].lstrip()
        if starts:
            text = text.partition(b"\n")[2]
        # Newer policies take minutes for a malicious header.
        yield _mail(message_from_bytes(text, policy=compat32))


def _starts(data: bytes) -> Iterator[int]:
    """The offsets of the mails of an mbox."""
    for match in _FROM.finditer(data):
        if _DATED.fullmatch(match[1]):
            yield match.start()


def _mail(message: Message) -> Mail:
    subject = " ".join(_decoded(str(message.get("Subject", ""))).split())
    reply = bool(_REPLY.match(subject))
    tag = _TAG.search(subject)
    place = tag[1] if tag else ""
    number = _NUMBER.search(place)
    version = _VERSION.search(place)
    title = subject[tag.end() :].strip() if tag else subject
    return Mail(
        title=title,
        # A reply quotes patches, in part.
        diff="" if reply else _diff(message, title),
        tagged=tag is not None,
        reply=reply,
        flowed=any(part.get_param("format") == "flowed" for part in message.walk()),
        version=int(version[1]) if version else 1,
        number=int(number[1]) if number else None,
        of=int(number[2]) if number else None,
    )


def _decoded(header: str) -> str:
    """The text of a header; with an unknown encoding it is left as it is."""
    try:
        return str(make_header(decode_header(header)))
    except (HeaderParseError, LookupError, ValueError):
        return header


def _diff(message: Message, title: str) -> str:
    """The diffs of all text parts, in the bytes that were sent (as git-am takes them)."""
    found = []
    for part in message.walk():
        if part.get_content_maintype() == "text" and part.get_content_subtype() != "html":
            content = part.get_payload(decode=True)
            if isinstance(content, bytes):
                try:
                    found.append(Diff(content.decode(**ENCODING)).text)
                except Damaged as error:
                    raise ValueError(f"{title!r}: {error}") from error
    return "".join(found)
