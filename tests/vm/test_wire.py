"""No corrupt frame is accepted; tests/fuzz splits streams."""

from __future__ import annotations

import pytest

from vm import wire

MESSAGE = {"id": 7, "calls": [["sys", 1, [{"in": "00ff"}, -1, 1 << 63], None]], "text": "é\n"}


def _decode(stream: bytes) -> list[dict[str, object]]:
    decoder = wire.Decoder()
    decoder.feed(stream)
    messages = []
    while (payload := decoder.take()) is not None:
        messages.append(wire.unpack(payload))
    return messages


def _parts(stream: bytes) -> set[str]:
    """The part reported as corrupt; empty while the frame is incomplete."""
    try:
        messages = _decode(stream)
    except wire.FrameError as error:
        return {error.part}
    return {"accepted"} if messages else set()


def test_frame_is_magic_length_checksum_json() -> None:
    frame = wire.pack({"a": 1})
    assert frame[:4] == b"UEV1"
    assert frame[4:8] == b"\0\0\0\x07"
    assert frame[12:] == b'{"a":1}'


def test_flipped_bits_are_detected() -> None:
    frame = wire.pack(MESSAGE)
    for bit in range(8 * len(frame)):
        corrupt = bytearray(frame)
        corrupt[bit // 8] ^= 1 << bit % 8
        assert _parts(bytes(corrupt)) <= {"magic", "length", "checksum"}, f"bit {bit}"


@pytest.mark.parametrize(
    ("stream", "part"),
    [
        (b"X", "magic"),
        (b"UEV1\x7f\xff\xff\xff\0\0\0\0", "length"),
        (b"UEV1\0\0\0\x02\0\0\0\0{}", "checksum"),
        (wire.frame(b"[1]"), "payload"),
        (wire.frame(b"{} {}"), "payload"),
        (wire.frame(b"\xff"), "payload"),
        (wire.frame(b""), "payload"),
    ],
)
def test_error_names_the_corrupt_part(stream: bytes, part: str) -> None:
    with pytest.raises(wire.FrameError) as caught:
        _decode(stream)
    assert caught.value.part == part


def test_payload_beyond_the_limit_is_not_sent() -> None:
    with pytest.raises(wire.FrameError) as caught:
        wire.frame(bytes(8 * 1024 * 1024 + 1))
    assert caught.value.part == "length"


def test_unencodable_message_raises() -> None:
    with pytest.raises(TypeError):
        wire.pack({"raw": b"bytes"})
