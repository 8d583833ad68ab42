"""Operations of perf: perf_event_open(2) and the ring buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from conformance.abi.perf import PERF_FLAG_FD_CLOEXEC
from conformance.ops.calls import Call, sys_call
from conformance.ops.decoding import perf_ring
from conformance.ops.operation import Operation, Reply, Resources


class PerfEventOpen(Operation, frozen=True):
    """perf_event_open(2) of the perf_event_attr at ``address`` into ``slot``.

    ``pid`` 0 is the caller and -1 every process; ``cpu`` -1 is every CPU.
    """

    slot: int
    address: int
    pid: int = 0
    cpu: int = -1
    depends_on_events: ClassVar[bool] = True

    def c_text(self) -> str:
        attr = f"(struct perf_event_attr *){self.address:#x}"
        options = "-1, PERF_FLAG_FD_CLOEXEC"
        return f"fd{self.slot} = perf_event_open({attr}, {self.pid}, {self.cpu}, {options})"

    def calls(self) -> list[Call]:
        arguments = (self.address, self.pid, self.cpu, -1, PERF_FLAG_FD_CLOEXEC)
        return [sys_call("perf_event_open", *arguments, slot=self.slot)]

    def record(self, resources: Resources) -> None:
        resources.slots.add(self.slot)


class ReadRing(Operation, frozen=True):
    """Read ``length`` bytes of a perf ring buffer mapped at ``address``.

    They are compared as the text of ``perf_ring``; ``sample_type`` says what samples hold.
    """

    address: int
    length: int
    sample_type: int

    def c_text(self) -> str:
        page = f"(struct perf_event_mmap_page *){self.address:#x}"
        return f"memcpy(buffer, {page}, {self.length})"

    def calls(self) -> list[Call]:
        return [["peek", self.address, self.length]]

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        last = replies[-1]
        return last.value, perf_ring.describe(last.data or b"", self.sample_type).encode()
