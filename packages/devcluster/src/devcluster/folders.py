"""Where files live: built programs in the user's cache, instances in the user's state folder.

Both follow the XDG base directory specification, which says that a relative path counts as unset.
"""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder of everything that can be built or downloaded again."""
    return _base("XDG_CACHE_HOME", ".cache") / "dynamo-operator" / "controlplane"


def state_folder() -> Path:
    """The folder with one subfolder per instance."""
    return _base("XDG_STATE_HOME", ".local/state") / "dynamo-operator" / "controlplane"


def _base(variable: str, default: str) -> Path:
    chosen = Path(os.environ.get(variable, ""))
    return chosen if chosen.is_absolute() else Path.home() / default
