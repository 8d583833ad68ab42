"""Looking at watched memory, in our own process in the place of a guest's."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from vm.guest.looks import Looks

PAGE = mmap.PAGESIZE


@pytest.fixture
def memory() -> mmap.mmap:
    return mmap.mmap(-1, 2 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def test_what_changes_is_seen_and_what_does_not_too(memory: mmap.mmap) -> None:
    looks, start = Looks(), address(memory)
    watch = [[os.getpid(), start, 2], [os.getpid(), start + PAGE - 1, 4]]
    assert looks.at(watch) == ["0000", "00000000"]
    memory[1:2] = memory[PAGE : PAGE + 1] = b"\xff"
    assert looks.at(watch) == ["00ff", "00ff0000"]
    assert looks.at([list(place) for place in watch]) == ["00ff", "00ff0000"]
    memory[1:2] = b"\0"
    assert looks.at(watch[:1]) == ["0000"]
    assert looks.at(watch) == ["0000", "00ff0000"]


def test_what_cannot_be_read_at_once_is_left_to_others(memory: mmap.mmap) -> None:
    looks, start = Looks(), address(memory)
    me = os.getpid()
    assert looks.at([]) is None
    assert looks.at([[me, start, 2], [me, 0, 2]]) is None
    assert looks.at([[me, start, 2], [1, start, 2]]) is None
    assert looks.at([[me, start, 2]]) == ["0000"]


def test_so_much_that_it_needs_memory_of_its_own(memory: mmap.mmap) -> None:
    watch = [[os.getpid(), address(memory), PAGE]] * 40
    assert Looks().at(watch) == ["00" * PAGE] * 40
