"""Numbers that can tell a slip of the pen: check digits of identifiers that Presidio has none for.

Each function takes the value as written and says whether it can be such a number.
"""

import re
from datetime import date


def social_security(value: str) -> bool:
    """US: no check digit, but areas, groups and serials that were never given out."""
    digits = _digits(value)
    if len(digits) != 9:
        return False
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and group != "00" and serial != "0000"


def nhs(value: str) -> bool:
    """England's ten digits, modulo 11."""
    digits = _digits(value)
    if len(digits) != 10 or len(set(digits)) == 1:
        return False
    total = sum(int(one) * weight for one, weight in zip(digits, range(10, 1, -1), strict=False))
    return (11 - total % 11) % 11 == int(digits[9])


def luhn(value: str) -> bool:
    """Payment cards, IMEI, Canada's social insurance number."""
    digits = _digits(value)
    if len(set(digits)) < 2:
        return False
    doubled = [int(one) * (2 if place % 2 else 1) for place, one in enumerate(reversed(digits))]
    return sum(one - 9 if one > 9 else one for one in doubled) % 10 == 0


def provider(value: str) -> bool:
    """US national provider identifier: Luhn behind the prefix 80840."""
    digits = _digits(value)
    return len(digits) == 10 and luhn(f"80840{digits}")


def dea(value: str) -> bool:
    """US drug enforcement number: two letters, six digits and their check digit."""
    digits = [int(one) for one in _digits(value)]
    if len(digits) != 7:
        return False
    return (sum(digits[0:6:2]) + 2 * sum(digits[1:6:2])) % 10 == digits[6]


def french(value: str) -> bool:
    """France's NIR: 13 places and a key, modulo 97; Corsica writes 2A and 2B."""
    text = re.sub(r"\W", "", value).upper().replace("2A", "19").replace("2B", "18")
    return len(text) == 15 and text.isdigit() and 97 - int(text[:13]) % 97 == int(text[13:])


def dutch(value: str) -> bool:
    """The Netherlands' BSN: nine digits, modulo 11."""
    digits = [int(one) for one in _digits(value)]
    if len(digits) != 9 or len(set(digits)) == 1:
        return False
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    return sum(one * weight for one, weight in zip(digits, weights, strict=True)) % 11 == 0


def nordic(value: str) -> bool:
    """Denmark's CPR and Norway's number begin with a date of birth; Norway's two checks count."""
    digits = _digits(value)
    day, month = int(digits[:2]) % 40, int(digits[2:4]) % 40
    if not _possible(day, month):
        return False
    if len(digits) == 10:
        return True
    numbers = [int(one) for one in digits]
    return _weighted(numbers, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) and _weighted(
        numbers, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)
    )


def vehicle(value: str) -> bool:
    """A vehicle identification number, with North America's check digit in the ninth place."""
    letters = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", "12345678123457923456789", strict=True))
    weights = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
    text = value.upper()
    if len(text) != 17 or len(set(text)) < 4:
        return False
    if any(one not in letters and not one.isdigit() for one in text):
        return False
    numbers = (int(letters.get(one, one)) for one in text)
    rest = sum(one * weight for one, weight in zip(numbers, weights, strict=True)) % 11
    return text[8] == ("X" if rest == 10 else str(rest))


def _digits(value: str) -> str:
    return re.sub(r"\D", "", value)


def _weighted(numbers: list[int], weights: tuple[int, ...]) -> bool:
    return sum(one * weight for one, weight in zip(numbers, weights, strict=False)) % 11 == 0


def _possible(day: int, month: int) -> bool:
    try:
        return bool(date(2000, month, day))
    except ValueError:
        return False
