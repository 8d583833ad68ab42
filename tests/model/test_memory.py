"""Address spaces: faults, copy-on-write and sharing."""

from __future__ import annotations

import mmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.address_space import AddressSpace
from conformance.model.memory.pages import PAGE_SIZE, USER_TOP, Entry, Page, is_user_range
from tests.model.generated import READ_WRITE, STEADY

BASE = 0x2000_0000_0000
PAGES = 3
LENGTH = PAGES * PAGE_SIZE

stores = st.lists(
    st.tuples(st.booleans(), st.integers(0, LENGTH - 64), st.binary(min_size=1, max_size=64)),
    max_size=12,
)


def mapped(*, shared: bool = False) -> AddressSpace:
    """Three fresh pages."""
    space = AddressSpace()
    space.map(BASE, LENGTH, READ_WRITE, shared=shared)
    return space


def write_both(space: AddressSpace, plain: bytearray, offset: int, data: bytes) -> None:
    """Store to modelled memory and to a bytearray."""
    space.write(BASE + offset, data)
    plain[offset : offset + len(data)] = data


@pytest.mark.parametrize("shared", [False, True])
@STEADY
@given(stores, stores)
def test_fork_copies_private_and_shares_shared_memory(
    shared: bool, before: list[tuple[bool, int, bytes]], after: list[tuple[bool, int, bytes]]
) -> None:
    parent, mine = mapped(shared=shared), bytearray(LENGTH)
    for _, offset, data in before:
        write_both(parent, mine, offset, data)
    child, theirs = parent.fork(), mine if shared else bytearray(mine)
    for by_child, offset, data in after:
        written = (child, theirs) if by_child else (parent, mine)
        write_both(*written, offset, data)
    assert parent.read(BASE, LENGTH) == bytes(mine)
    assert child.read(BASE, LENGTH) == bytes(theirs)


@STEADY
@given(stores)
def test_a_second_fork_copies_private_memory(written: list[tuple[bool, int, bytes]]) -> None:
    parent = mapped()
    grandchild = parent.fork().fork()
    for _, offset, data in written:
        grandchild.write(BASE + offset, data)
    assert parent.read(BASE, LENGTH) == bytes(LENGTH)


def test_only_written_pages_are_pinned() -> None:
    space = mapped()
    assert space.pinned(BASE) is None
    space.read(BASE, 8)
    assert space.pinned(BASE) is None
    space.write(BASE, b"a")
    assert space.pinned(BASE) is not None
    assert space.pinned(BASE + PAGE_SIZE) is None


@pytest.mark.parametrize("shared", [False, True])
def test_private_pages_fault_again_after_fork(shared: bool) -> None:
    parent = mapped(shared=shared)
    parent.write(BASE, b"a")
    child = parent.fork()
    assert child.pinned(BASE) is None
    assert (parent.pinned(BASE) is None) is not shared
    child.write(BASE, b"b")
    assert child.pinned(BASE) is not None


def test_added_rights_need_a_fault() -> None:
    space = mapped()
    space.write(BASE, b"a")
    space.protect(BASE, PAGE_SIZE, mmap.PROT_READ)
    assert space.pinned(BASE) is None
    with pytest.raises(Errno, match="EFAULT"):
        space.write(BASE, b"b")
    assert space.read(BASE, 1) == b"a"
    space.protect(BASE, PAGE_SIZE, READ_WRITE)
    assert space.pinned(BASE) is None
    space.write(BASE, b"b")
    assert space.pinned(BASE) is not None


def test_a_faulting_store_writes_the_first_page() -> None:
    space = mapped()
    space.unmap(BASE + PAGE_SIZE, PAGE_SIZE)
    with pytest.raises(Errno, match="EFAULT"):
        space.write(BASE + PAGE_SIZE - 2, b"abcd")
    assert space.read(BASE + PAGE_SIZE - 2, 2) == b"ab"
    assert space.readable(BASE + PAGE_SIZE - 2, 4) == 2


def test_remapped_memory_is_zero() -> None:
    space = mapped()
    space.write(BASE, b"a")
    space.unmap(BASE, LENGTH)
    space.map(BASE, LENGTH, READ_WRITE, shared=False)
    assert space.read(BASE, 1) == b"\0"


def test_uninitialized_bytes_are_unknown_until_written_or_read() -> None:
    space = AddressSpace()
    page = Page(unknown=set(range(PAGE_SIZE)))
    space.map_frames(range(BASE // PAGE_SIZE, BASE // PAGE_SIZE + 1), [page], Entry(3, True))
    assert space.is_known(BASE, 0)
    assert not space.is_known(BASE, 1)
    space.write(BASE + 4, b"ab")
    assert space.is_known(BASE + 4, 2)
    assert not space.is_known(BASE + 4, 3)
    # Known bytes keep their content.
    space.learn(BASE + 3, b"wxyz")
    assert space.read(BASE + 3, 4) == b"wabz"
    assert space.is_known(BASE + 3, 4)


def test_a_private_copy_keeps_unknown_bytes() -> None:
    space = AddressSpace()
    page = Page(unknown=set(range(PAGE_SIZE)))
    space.map_frames(range(BASE // PAGE_SIZE, BASE // PAGE_SIZE + 1), [page], Entry(3, False))
    space.write(BASE, b"a")
    space.learn(BASE + 1, b"b")
    assert space.is_known(BASE, 2)
    assert not space.is_known(BASE + 2, 1)
    assert page.unknown == set(range(PAGE_SIZE))


def test_mappings_must_not_overlap() -> None:
    with pytest.raises(Errno, match="EEXIST"):
        mapped().map(BASE + PAGE_SIZE, PAGE_SIZE, READ_WRITE, shared=False)
    with pytest.raises(Errno, match="EINVAL"):
        mapped().map(BASE + LENGTH + 8, PAGE_SIZE, READ_WRITE, shared=False)


def test_the_end_of_user_space_depends_on_the_paging_mode() -> None:
    assert is_user_range(USER_TOP - 8, 8)
    assert not is_user_range(1 << 63, 0)
    assert not is_user_range((1 << 63) - 4, 8)
    with pytest.raises(NotModelled, match="paging mode"):
        is_user_range(USER_TOP + PAGE_SIZE, 8)


@pytest.mark.parametrize("address", [USER_TOP - 4, USER_TOP + PAGE_SIZE, (1 << 63) - 8])
def test_memory_that_is_not_mapped_faults_in_any_paging_mode(address: int) -> None:
    space = AddressSpace()
    for access in (lambda: space.read(address, 8), lambda: space.write(address, bytes(8))):
        with pytest.raises(Errno, match="EFAULT"):
            access()


def test_whether_memory_is_mapped_there_depends_on_the_paging_mode() -> None:
    space = AddressSpace()
    space.map(USER_TOP - PAGE_SIZE, PAGE_SIZE, READ_WRITE, shared=False)
    with pytest.raises(NotModelled, match="paging mode"):
        space.write(USER_TOP - 4, bytes(8))


def ring() -> AddressSpace:
    """A perf ring of three pages."""
    space = AddressSpace()
    first = BASE // PAGE_SIZE
    entry = Entry(READ_WRITE, shared=True, owner=object())
    space.map_frames(range(first, first + PAGES), [Page() for _ in range(PAGES)], entry)
    return space


@pytest.mark.parametrize(("page", "pages"), [(0, 1), (0, 2), (1, 1), (1, 2)])
def test_a_part_of_a_ring_is_not_modelled(page: int, pages: int) -> None:
    part = BASE + page * PAGE_SIZE, pages * PAGE_SIZE
    with pytest.raises(NotModelled, match="a part of a ring"):
        ring().unmap(*part)
    with pytest.raises(NotModelled, match="a part of a ring"):
        ring().protect(*part, mmap.PROT_READ)


def test_a_whole_ring_is_unmapped() -> None:
    space = ring()
    space.unmap(BASE, LENGTH)
    assert not space.entries


def test_discarding_goes_on_behind_a_gap_and_ends_at_a_device() -> None:
    """As seen on 6.1, 6.12 and 7.3."""
    space = mapped()
    space.write(BASE + 2 * PAGE_SIZE, b"a")
    space.unmap(BASE + PAGE_SIZE, PAGE_SIZE)
    with pytest.raises(Errno, match="ENOMEM"):
        space.discard(BASE, LENGTH)
    assert space.read(BASE + 2 * PAGE_SIZE, 1) == b"\0"
    number = BASE // PAGE_SIZE + 1
    space.map_frames(range(number, number + 1), [Page()], Entry(READ_WRITE, shared=True))
    space.write(BASE + 2 * PAGE_SIZE, b"a")
    with pytest.raises(Errno, match="EINVAL"):
        space.discard(BASE, LENGTH)
    assert space.read(BASE + 2 * PAGE_SIZE, 1) == b"a"


def test_only_what_was_written_is_read_without_a_fault() -> None:
    space = mapped()
    space.write(BASE, b"a")
    assert space.read_present(BASE, 1) == b"a"
    with pytest.raises(NotModelled, match="never written"):
        space.read_present(BASE + PAGE_SIZE, 1)
