"""Reading text files as their views compare them; the functions are those of c/."""

from __future__ import annotations

from conformance import ops
from conformance.ops.decoding.file_views import View
from conformance.repro import literals as c

_COUNTS = ("bytes:", "oldest event ts:", "now ts:")


def read_file(each: ops.ReadFile) -> str:
    """The text of a file, reduced to what is compared."""
    text = f"cat({c.path(each.path)})"
    own = f", {c.string(each.prefix.encode())})"
    match each.view:
        case View.OWN:
            return f"own_lines({text}{own}" if each.prefix else text
        case View.DEFINITIONS:
            text = f"without_users({text})"
            return f"own_lines({text}{own}" if each.prefix else text
        case View.STRUCTURE:
            return f"without_lengths(without_id({text}))"
        case View.ARRAYS:
            return f"without_id({text})"
        case View.RECORDS:
            return f"records({text}, {sizes(each.sizes)})"
        case View.DISTINCT:
            return f"distinct(records({text}, {sizes(each.sizes)}))"
        case View.COUNTS:
            words = ", ".join(f'"{word}"' for word in _COUNTS)
            return f"without_lines({text}, {len(_COUNTS)}, (const char *const[]){{ {words} }})"
        case View.TRIGGERS:
            return f"triggers({text})"
        case View.ERRORS:
            return f"without_times({text})"
    return text


def sizes(payloads: tuple[int, ...]) -> str:
    """Payload sizes as two arguments."""
    listed = ", ".join(map(str, payloads))
    return f"{len(payloads)}, (const int[]){{ {listed} }}" if payloads else "0, NULL"
