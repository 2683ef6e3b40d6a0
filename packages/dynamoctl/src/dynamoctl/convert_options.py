"""The options of `dynamoctl convert`; parsed before the code of the command is imported."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Choices:
    """How to convert.

    Parameters
    ----------
    graph_config
        The `bento.yaml` of all DynamoDeployments.
    image
        Image of all services (default: what a DynamoNim or DynamoNimRequest says).
    suffix
        Text to append to names, so that old and new can run in one namespace.
    settings
        Settings file of the operator (default: those of a default installation).
    is_strict
        Exit with 1 if anything was dropped or guessed.
    output
        Output format: `yaml` prints one document per object, `json` one List.
    """

    graph_config: Annotated[Path | None, Parameter(metavar="FILE")] = None
    image: Annotated[str, Parameter(metavar="IMAGE", show_default=False)] = ""
    suffix: Annotated[
        str, Parameter(metavar="TEXT", show_default=False, allow_leading_hyphen=True)
    ] = ""
    settings: Annotated[Path | None, Parameter(metavar="FILE")] = None
    is_strict: Annotated[bool, Parameter(name="--strict")] = False
    output: Annotated[Literal["yaml", "json"], Parameter(name=["--output", "-o"])] = "yaml"


DEFAULT = Choices()
