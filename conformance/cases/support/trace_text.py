"""Lines of `trace`."""

from conformance.client.user_events import UserEvents


def u8_lines(ue: UserEvents, *numbers: int, name: str = "e") -> list[str]:
    """The lines of an event `u8 a` called ``name()``, for values below 32."""
    return [ue.line(f"a=({a})", dump=f"{a:02x}", name=name) for a in numbers]


def recorded(ue: UserEvents, fields: str, *payloads: bytes) -> list[str]:
    """Trace lines of payloads that are written to a new event with these fields."""
    event = ue.event(fields, enabled=True)
    for payload in payloads:
        assert event.write(payload).value == len(payload) + 4
    return ue.tracefs.records()
