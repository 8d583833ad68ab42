"""struct iov_iter after the write index, and the kernel memory of a context."""

from __future__ import annotations

import pytest

from conformance.model.errors import NotModelled
from conformance.model.user_events.bpf_context import Context, IovIter


@pytest.mark.parametrize(
    ("lengths", "left", "offset"),
    [
        pytest.param([12], [12], 4, id="within-a-segment"),
        pytest.param([4, 8], [8], 0, id="to-the-end-of-a-segment"),
        pytest.param([3, 9], [9], 1, id="over-two-segments"),
        pytest.param([1, 1, 1, 1, 8], [8], 0, id="over-many"),
        pytest.param([0, 4, 8], [8], 0, id="empty-segment-before"),
        pytest.param([4, 0, 8], [0, 8], 0, id="empty-segment-after"),
        pytest.param([4], [], 0, id="nothing-left"),
        pytest.param([4, 0], [0], 0, id="only-an-empty-segment"),
    ],
)
def test_iterator_after_the_write_index(lengths: list[int], left: list[int], offset: int) -> None:
    segments = [(0x1000 * number, length) for number, length in enumerate(lengths)]
    rest = IovIter.after(4, segments)
    assert [length for _, length in rest.segments] == left
    assert rest.offset == offset
    # The remaining segments are the last ones.
    assert rest.segments == tuple(segments[len(lengths) - len(left) :])


def test_kernel_memory_is_limited_to_the_context() -> None:
    context = Context(b"", {0x1000: b"abcdef", 0x2000: b"xyz"})
    assert context.read(0x1000, 6) == b"abcdef"
    assert context.read(0x2001, 2) == b"yz"
    for address, length in ((0x1000, 7), (0xFFF, 2), (0x3000, 1)):
        with pytest.raises(NotModelled):
            context.read(address, length)
