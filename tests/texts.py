"""Texts in JSON values."""

import json
from collections.abc import Mapping
from typing import Any


def replaced(value: Any, texts: Mapping[str, str]) -> Any:
    """The JSON value with other texts in place of these, wherever they occur, in keys as well."""
    text = json.dumps(value)
    for old, new in texts.items():
        text = text.replace(old, new)
    return json.loads(text)
