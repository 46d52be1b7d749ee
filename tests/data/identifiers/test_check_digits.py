"""Check digits against numbers that are published as examples, and each slip of one digit."""

from collections.abc import Callable

import pytest

from factory.data.identifiers import check_digits

VALID: list[tuple[Callable[[str], bool], str]] = [
    (check_digits.nhs, "9434765919"),
    (check_digits.luhn, "4111111111111111"),
    (check_digits.luhn, "046454286"),
    (check_digits.provider, "1234567893"),
    (check_digits.dea, "AB1234563"),
    (check_digits.french, "255081416802538"),
    (check_digits.dutch, "111222333"),
    (check_digits.vehicle, "1M8GDM9AXKP042788"),
]

HIDDEN = {check_digits.dea: 3, check_digits.vehicle: 10}
"""Slips that a check cannot see: by five in a doubled place, or in the check digit's own letter."""


@pytest.mark.parametrize(("check", "value"), VALID)
def test_valid_and_every_slip(check: Callable[[str], bool], value: str) -> None:
    assert check(value)
    slips = [
        f"{value[:place]}{digit}{value[place + 1 :]}"
        for place, old in enumerate(value)
        if old.isdigit()
        for digit in "0123456789"
        if digit != old
    ]
    passed = [slip for slip in slips if check(slip)]
    assert len(passed) <= HIDDEN.get(check, 0)


def test_numbers_never_given_out() -> None:
    assert check_digits.social_security("219-09-9998")
    for value in ("000-12-3456", "666-12-3456", "219-00-9998", "219-09-0000", "21909999"):
        assert not check_digits.social_security(value)


def test_nordic_numbers_begin_with_a_date() -> None:
    assert check_digits.nordic("070761-4285")
    assert not check_digits.nordic("311361-4285")
    assert not check_digits.nordic("12345678901")
