"""Numbers in texts that the kernel parses."""

from __future__ import annotations

import re

from conformance.model.errors import Errno

_U32 = 1 << 32
_U64 = 1 << 64
# kstrtoul_from_user(): sign, 64 binary digits, newline.
_MOST_CHARACTERS = 66
_WRITTEN = re.compile(r"\+?([0-9]+)(.*)", re.DOTALL)
_NUMBER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0([0-7]*)|([1-9][0-9]*))")


def number_in(text: str) -> int | None:
    """kstrtoll() with base 0, None if refused."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    sign, hexadecimal, octal, decimal = found.groups()
    if hexadecimal is not None:
        value = int(hexadecimal, 16)
    else:
        value = int(decimal) if decimal is not None else int(octal or "0", 8)
    return -value if sign == "-" else value


def parse_unsigned(text: str, base: int) -> int:
    """kstrtouint(): 32 bits, optional ``+``, one trailing newline.

    Raises Errno("EINVAL") for other text and out of range: user_events returns EINVAL for every
    failure.
    """
    digits = text.removeprefix("+").removesuffix("\n")
    if base == 0:
        base, digits = _radix(digits)
    allowed = "0123456789abcdef"[:base]
    if not digits or any(digit not in allowed for digit in digits.lower()):
        raise Errno("EINVAL")
    value = int(digits, base)
    if value >= _U32:
        raise Errno("EINVAL")
    return value


def parse_written(text: str) -> int:
    """kstrtoul_from_user() with base 10: an unsigned long, up to a NUL.

    Raises Errno: EINVAL, or ERANGE out of range.
    """
    found = _WRITTEN.fullmatch(text[:_MOST_CHARACTERS].partition("\0")[0])
    if found is None:
        raise Errno("EINVAL")
    value = int(found[1])
    if value >= _U64:
        raise Errno("ERANGE")
    if found[2] not in ("", "\n"):
        raise Errno("EINVAL")
    return value


def parse_switch(text: str) -> bool:
    """0 or 1, as event_enable_write() takes it.  Raises Errno like ``parse_written``."""
    value = parse_written(text)
    if value not in (0, 1):
        raise Errno("EINVAL")
    return bool(value)


def _radix(digits: str) -> tuple[int, str]:
    """_parse_integer_fixup_radix() for base 0."""
    if digits[:1] != "0":
        return 10, digits
    if digits[1:2].lower() == "x" and digits[2:3].lower() in list("0123456789abcdef"):
        return 16, digits[2:]
    return 8, digits
