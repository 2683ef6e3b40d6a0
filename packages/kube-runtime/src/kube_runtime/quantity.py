"""Parse Kubernetes quantities, so that `1000m` and `1` compare equal.

Quantities with too many digits or too large an exponent are refused, because they would need a number of any
size.
"""

import re
from decimal import Context, Decimal, DecimalException

# Source: `https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/`
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?",
    re.ASCII,
)
_FACTOR = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000) ** (power + 1) for power, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": Decimal(1024) ** (power + 1) for power, suffix in enumerate("KMGTPE")},
}
_MOST_DIGITS = 64
_EXACT = Context(prec=200)
_BOUND = Decimal(2) ** 63
"""The API server caps amounts at this value."""


def amount(quantity: str | int) -> Decimal | None:
    """The value in base units (cores, bytes, devices); None if it is invalid or out of range."""
    if isinstance(quantity, int):
        return Decimal(quantity) if abs(quantity) < _BOUND else None
    match = _QUANTITY.fullmatch(quantity)
    if match is None or max(len(match["number"]), len(match["suffix"] or "")) > _MOST_DIGITS:
        return None
    number, suffix = Decimal(match["number"]), match["suffix"] or ""
    try:
        if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
            value = _EXACT.scaleb(number, int(suffix[1:]))
        else:
            value = _EXACT.multiply(number, _FACTOR.get(suffix, Decimal(1)))
    except DecimalException:
        return None
    return value if abs(value) < _BOUND else None


def is_same_amount(left: object, right: object) -> bool:
    """Whether two JSON values are equal quantities, such as `1000m` and 1."""
    if not isinstance(left, str | int) or not isinstance(right, str | int):
        return False
    value = amount(left)
    return value is not None and value == amount(right)
