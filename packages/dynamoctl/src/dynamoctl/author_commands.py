"""The commands that help to write objects and command lines, as they are typed."""

from typing import Annotated, Literal

from cyclopts import Parameter


def explain(
    field: Annotated[str, Parameter(metavar="FIELD", show_default=False)] = "",
    /,
    *,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> None:
    """Explain a field of a graph or of another kind: type, default, rules and the fields below it.

    It needs no cluster. Example: dynamoctl explain services.resources.limits

    Parameters
    ----------
    field
        Path of the field, for example dgdr.spec.profilingConfig (default: the graph).
    output
        Output format: `text` for people, `json` prints its JSON schema.
    """
    from dynamoctl.fields import print_field

    print_field(field, output)


def schema(
    *kinds: Annotated[str, Parameter(metavar="KIND", show_default=False)],
) -> None:
    """Print a JSON schema for editors.

    Example: dynamoctl schema > dynamo.json, and as the first line of a YAML file
    # yaml-language-server: $schema=dynamo.json

    Parameters
    ----------
    kinds
        Kinds, plurals or short names, for example dgd (default: all).
    """
    from dynamoctl.fields import print_schema

    print_schema(kinds)


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(metavar="SHELL")],
    /,
) -> None:
    """Print a script that completes commands, options and names from the cluster.

    Example: source <(dynamoctl completion bash)

    Parameters
    ----------
    shell
        Shell that the script is for.
    """
    from dynamoctl.completion import SCRIPTS

    print(SCRIPTS[shell], end="")
