"""Lines in a picture, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP = 400, 240, 50, 20
_STYLES = ("", "8 3", "2 3", "8 3 2 3")


def plot(
    title: str,
    across: str,
    up: str,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    *,
    logarithmic: bool = False,
) -> str:
    """Lines by label, each of points (x, y) of at least 1, and y = x in gray.

    The axes have the same range, marked at the values of x.
    """
    marks = sorted({x for points in lines.values() for x, _ in points})
    lowest = 1.0 if logarithmic else 0.0
    most = max(value for points in lines.values() for point in points for value in point)

    def place(x: float, y: float) -> tuple[float, float]:
        shares = (
            math.log(value) / math.log(most) if logarithmic else value / most for value in (x, y)
        )
        right, above = shares
        return _LEFT + _WIDTH * right, _TOP + _HEIGHT * (1 - above)

    def path(points: Sequence[tuple[float, float]]) -> str:
        return " ".join("{:.0f},{:.0f}".format(*place(*point)) for point in points)

    bottom, end = _TOP + _HEIGHT, _LEFT + _WIDTH
    drawn = [
        f'<path d="M{_LEFT},{_TOP} V{bottom} H{end}" fill="none" stroke="black"/>',
        f'<polyline points="{path([(lowest, lowest), (most, most)])}" fill="none" stroke="gray"/>',
    ]
    for mark in marks:
        x, y = place(mark, mark)
        drawn.append(f'<text x="{x:.0f}" y="{bottom + 18}" text-anchor="middle">{mark:g}</text>')
        drawn.append(f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{mark:g}</text>')
    for at, (label, points) in enumerate(lines.items()):
        stroke = f'fill="none" stroke="black" stroke-width="2" stroke-dasharray="{_STYLES[at]}"'
        drawn.append(f'<polyline points="{path(points)}" {stroke}/>')
        y = _TOP + 14 * (at + 1)
        drawn.append(f'<path d="M{_LEFT + 12},{y - 4} h30" {stroke}/>')
        drawn.append(f'<text x="{_LEFT + 48}" y="{y}">{escape(label)}</text>')
    drawn.append(f'<text x="{_LEFT + _WIDTH // 2}" y="298" text-anchor="middle">{across}</text>')
    drawn.append(f'<text x="{_LEFT}" y="12">{up}</text>')
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 310"'
        ' font-family="sans-serif" font-size="11">\n'
        f"<title>{title}</title>\n"
        '<rect width="480" height="310" fill="white"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )
