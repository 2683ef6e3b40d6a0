"""Quantities: which texts are one, which are equal, and the form in which the Go operator writes each.

We keep quantities as they are typed. The Go operator writes some of them anew, and saves those that do not
come back from its own text; what we save has to be the same.
"""

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

from kube_runtime.types.meta import amount

Typed: TypeAlias = str | int | float
"""A quantity as it is in JSON."""

# Source: `https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/`
_PARTS = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>\d++)(?:(?P<point>\.)(?P<part>\d*+))?|\.(?P<only_part>\d+))"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?",
    re.ASCII,
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ei": 60, "Pi": 50, "Ti": 40, "Gi": 30, "Mi": 20, "Ki": 10}
_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_MOST_KEPT_DIGITS = 18
_MOST_DIGITS = 64
_BOUND = (1 << 63) - 1


def is_quantity(text: str) -> bool:
    """Whether a text is a quantity."""
    return _PARTS.fullmatch(text) is not None


def text_of(quantity: Typed) -> str:
    """The text of a quantity, which may be typed as a number."""
    if isinstance(quantity, str):
        return quantity
    return str(int(quantity)) if quantity == int(quantity) else format(Decimal(str(quantity)), "f")


def is_zero(quantity: Typed) -> bool:
    """Whether the quantity is none."""
    return amount(text_of(quantity)) == 0


def canonical(quantity: Typed) -> str:
    """The text that the Go operator writes for it.

    It keeps most of what is typed. It rewrites multiples of 8 and fractions with a binary suffix, and decimal
    numbers that end in 000, or that start with 0, or whose last digit is not of a power of 1000. Other texts,
    and numbers of more digits than any resource has, are returned as they are.
    """
    text = text_of(quantity)
    return text if len(text) > _MOST_DIGITS else _canonical(text)


@lru_cache(maxsize=1024)  # most quantities of a cluster are a few texts
def _canonical(text: str) -> str:
    match = _PARTS.fullmatch(text)
    if match is None:
        return text
    suffix = match["suffix"] or ""
    whole = (match["whole"] or "").lstrip("0")
    part = match["part"] or match["only_part"] or ""
    negative = match["sign"] == "-"
    if suffix in _BINARY:
        if not (match["point"] or match["only_part"]) and int(whole or "0") % 8:
            return text
        number = Fraction(int(whole + part or "0"), 10 ** len(part)) * 2 ** _BINARY[suffix]
        return _binary(number, negative=negative)
    has_exponent = suffix not in _DECIMAL
    exponent = int(suffix[1:]) if has_exponent else _DECIMAL[suffix]
    digits = (whole or "0") + part
    scale = exponent - len(part)
    is_short = len(digits) <= _MOST_KEPT_DIGITS
    if text == "0" or (
        is_short and scale % 3 == 0 and not digits.startswith("0") and not digits.endswith("000")
    ):
        return text
    return _decimal(int(digits), scale, negative=negative, has_exponent=has_exponent)


def is_same(left: Typed, right: Typed) -> bool:
    """Whether two quantities are equal, such as `1000m` and 1."""
    return canonical(left) == canonical(right) or (
        (value := amount(text_of(left))) is not None and value == amount(text_of(right))
    )


def _binary(number: Fraction, *, negative: bool) -> str:
    sign = "-" if negative and number else ""
    if number.denominator == 1 and number >= 1024:  # noqa: PLR2004 the least that has a suffix
        whole = min(int(number), _BOUND)
        for suffix, power in _BINARY.items():
            if whole % (1 << power) == 0:
                return f"{sign}{whole >> power}{suffix}"
        return f"{sign}{whole}"
    scaled = number * 10**9
    nano = int(scaled) + (scaled.denominator != 1)
    return _decimal(nano, -9, negative=negative, has_exponent=False)


def _decimal(number: int, scale: int, *, negative: bool, has_exponent: bool) -> str:
    if number == 0:
        return "0"
    if scale < -9:  # noqa: PLR2004 the least unit, rounded up
        number, scale = -(-number // 10 ** min(-9 - scale, _MOST_DIGITS)), -9
    digits = str(number).rstrip("0")
    scale += len(str(number)) - len(digits)
    digits, scale = digits + "0" * (scale % 3), scale - scale % 3
    sign = "-" if negative else ""
    if has_exponent:
        return f"{sign}{digits}e{scale}" if scale else f"{sign}{digits}"
    if scale > _DECIMAL["E"]:
        digits, scale = digits + "0" * (scale - _DECIMAL["E"]), _DECIMAL["E"]
    return f"{sign}{digits}{_SUFFIXES[scale]}"
