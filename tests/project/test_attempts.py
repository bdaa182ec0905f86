"""Repeats of tests of hosts: a failure counts where the machine kept time."""

from __future__ import annotations

import attempts
import pytest
from attempts import Attempts


@pytest.mark.parametrize(
    ("late", "ends"),
    [
        ([(0.1, 5.0), (3.0, 80.0)], pytest.fail.Exception),
        ([(3.0, 5.0), (0.1, 80.0)], pytest.skip.Exception),
        ([(0.1, 5.0)] * 2, pytest.fail.Exception),
    ],
)
def test_attempts_of_a_late_machine_do_not_count(
    late: list[tuple[float, float]], ends: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter(late)
    monkeypatch.setattr(attempts._Beat, "late", lambda _: next(told))
    tries = Attempts(2)
    assert list(tries) == [0, 1]
    with pytest.raises(ends, match="off by a half"):
        tries.fail("off by a half")
