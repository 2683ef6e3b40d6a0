"""Remove credentials from texts before they are published, and find them in addresses.

Any user may have written the text, in any form and length. What looks like a credential is removed, even if
it is none; the time is linear in the text's length.
"""

import re
from typing import Final

_HIDDEN: Final = "***"
_LONGEST: Final = 4096

_PASSWORD: Final = re.compile(r"://[^/\s@:]{0,256}:[^\s@]{0,512}@")
_TOKEN: Final = re.compile(r"(https?)://[^/\s@]{1,512}@", re.IGNORECASE)
_QUERY: Final = re.compile(r"(://[^\s?]{1,1024})\?[^\s'\"]+")
_BEARER: Final = re.compile(r"\b(bearer|authorization: basic)\s+[^\s'\"]+", re.IGNORECASE)
_KNOWN: Final = re.compile(r"\bhf_[A-Za-z0-9]{8,}")
"""Tokens of the Hugging Face Hub. Source: its documentation."""


def without_credentials(text: str) -> str:
    """At most 4096 characters of the text, with `***` for what may be a credential."""
    text = _PASSWORD.sub(f"://{_HIDDEN}@", text[:_LONGEST])
    text = _TOKEN.sub(rf"\1://{_HIDDEN}@", text)
    text = _QUERY.sub(rf"\1?{_HIDDEN}", text)
    text = _BEARER.sub(rf"\1 {_HIDDEN}", text)
    return _KNOWN.sub(_HIDDEN, text)


def has_credentials(address: str) -> bool:
    """Whether the address contains a password, a query or a token."""
    return without_credentials(address) != address[:_LONGEST]
