"""bpf(2)."""

from __future__ import annotations

from conformance.ops.calls import Call, sys_call
from conformance.ops.operation import Operation, Resources


class Bpf(Operation, frozen=True):
    """bpf(2) with ``size`` bytes of attributes at ``address``.

    With a ``slot`` the result is a descriptor that is kept there, and the value is 0.
    """

    command: int
    address: int
    size: int
    slot: int | None = None

    def c_text(self) -> str:
        kept = "" if self.slot is None else f"fd{self.slot} = "
        return f"{kept}bpf({self.command}, (union bpf_attr *){self.address:#x}, {self.size})"

    def calls(self) -> list[Call]:
        return [sys_call("bpf", self.command, self.address, self.size, slot=self.slot)]

    def record(self, resources: Resources) -> None:
        if self.slot is not None:
            resources.slots.add(self.slot)
