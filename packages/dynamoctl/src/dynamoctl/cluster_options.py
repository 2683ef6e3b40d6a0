"""The options of commands that inspect one object; parsed before the code of the commands is imported."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """Where the object is.

    Parameters
    ----------
    namespace
        Namespace (default: the context's, else `default`).
    context
        Context in the kubeconfig (default: the current one).
    kubeconfig
        Kubeconfig file (default: kubectl's).
    """

    namespace: Annotated[
        str, Parameter(name=["--namespace", "-n"], metavar="NAME", show_default=False)
    ] = ""
    context: Annotated[str, Parameter(metavar="NAME", show_default=False)] = ""
    kubeconfig: Annotated[Path | None, Parameter(metavar="FILE")] = None


HERE = Where()
"""That of a command line that says nothing."""
