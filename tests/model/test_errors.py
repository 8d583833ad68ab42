"""Names of errors."""

from __future__ import annotations

import pytest

from conformance.model.errors import Errno


def test_an_alias_becomes_the_name_in_observations() -> None:
    assert (Errno("EOPNOTSUPP").name, Errno("EWOULDBLOCK").name) == ("ENOTSUP", "EAGAIN")


@pytest.mark.parametrize("name", ["EOOPS", "errorcode", ""])
def test_an_unknown_name_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of an errno"):
        Errno(name)
