"""Commands that help to write objects and command lines."""

import gc
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter
from cyclopts.validators import Number

from dynamoctl.options import (
    Files,
    Name,
    Namespace,
    OptionalFile,
    Paths,
    ProfileOptions,
    Recursive,
    SettingsFile,
    TextOrJson,
    YamlOutput,
    all_files,
)

ApiVersion: TypeAlias = Literal["nvidia.com/v1alpha1", "nvidia.com/v1beta1"]


def explain(
    field: Annotated[str, Parameter(show_default=False)] = "",
    /,
    *,
    api_version: Annotated[ApiVersion | None, Parameter(show_default=False)] = None,
    output: TextOrJson = "text",
) -> None:
    """Explain a field: type, default, rules, and the fields below.

    It needs no cluster.
    Example: dynamoctl explain components.scalingAdapter

    Parameters
    ----------
    field
        Path of the field, for example dgdr.spec.profilingConfig (default: the graph).
    api_version
        Version of the kind (default: the newest one that has the field).
    output
        Output format: `text` for people, `json` prints its JSON schema.
    """
    from dynamoctl.authoring.lint import print_field

    print_field(field, output, api_version or "")


def schema(
    *kinds: Annotated[str, Parameter(name="KIND", show_default=False)],
    api_version: Annotated[ApiVersion | None, Parameter(show_default=False)] = None,
) -> None:
    """Print a JSON schema for editors.

    A YAML file names it in its first line: # yaml-language-server: $schema=dynamo.json
    Example: dynamoctl schema > dynamo.json

    Parameters
    ----------
    kinds
        Kinds, plurals or short names, for example dgd (default: all).
    api_version
        Version of the kinds (default: all versions, which the schema tells apart).
    """
    from dynamoctl.authoring.lint import editor_schema, in_api_versions
    from dynamoctl.authoring.manifest import selected
    from dynamoctl.screen import show_json

    show_json(editor_schema(in_api_versions(selected(kinds), api_version or "")))


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script for the completion of a shell.

    It completes commands, options, their values and names from the cluster.

    Example: source <(dynamoctl completion bash)

    Parameters
    ----------
    shell
        Shell that the script is for.
    """
    from dynamoctl.commands.completion import SCRIPTS

    print(SCRIPTS[shell], end="")


def profile(
    *,
    options: ProfileOptions,
    output: Annotated[Literal["table", "csv", "json", "yaml"], Parameter(name=["--output", "-o"])] = "table",
    api_version: ApiVersion = "nvidia.com/v1beta1",
    plot: Annotated[Path | None, Parameter(metavar="FILE", show_default=False)] = None,
    report: Annotated[Path | None, Parameter(metavar="FILE", show_default=False)] = None,
) -> None:
    """Find the cheapest graph that meets latency targets.

    It needs no GPU and no cluster. It predicts and measures nothing; each result names
    its engine and its error. Exits with 1 if no graph meets the targets, and reports
    what would be possible.
    Example: dynamoctl profile --model Qwen/Qwen3-32B --gpu h200_sxm --ttft 300 --itl 20

    Parameters
    ----------
    output
        Output format: `yaml` prints the graph, the others print the candidates.
    api_version
        Version of the printed graph.
    plot
        SVG file to write: cost against speed, with the targets and the choices.
    report
        HTML file to write: the plot and all candidates, in one file.
    """
    from dynamoctl.authoring.profiling import print_profile

    print_profile(options, output, api_version, plot=plot, report=report)


def new(
    name: Name,
    /,
    *,
    options: ProfileOptions,
    replicas: Annotated[
        int, Parameter(metavar="NUMBER", show_default=False, validator=Number(gte=0, lte=2**31 - 1))
    ] = 0,
    api_version: ApiVersion = "nvidia.com/v1beta1",
) -> None:
    """Print the manifest of a graph for a model.

    Its sizes are derived from the model's shape and the targets.

    Example: dynamoctl new chat --model Qwen/Qwen3-32B --gpu h200_sxm > chat.yaml

    Parameters
    ----------
    name
        Name of the graph.
    replicas
        Replicas of each kind of worker (default: those that the load takes).
    api_version
        Version of the graph.
    """
    from dynamoctl.authoring.profiling import print_new

    print_new(options, name, replicas, api_version)


def render(
    *paths: Paths,
    files: Files = (),
    is_recursive: Recursive = False,
    orchestrator: Literal["deployment", "lws", "grove"] = "lws",
    settings: SettingsFile = None,
    facts: OptionalFile = None,
    namespace: Namespace = "",
    output: YamlOutput = "yaml",
) -> None:
    """Print the objects that the operator would create.

    It needs no cluster. It renders graphs, components and requests with the operator's own plan and code
    and prints other objects unchanged. Pull secrets, ServiceAccounts, ConfigMaps and
    scaling adapters in the files count as objects of the cluster. On any error it
    prints no object. It leaves out owner references, whose uids only a cluster knows,
    and generated SSH keys.
    Example: dynamoctl render -f graph.yaml

    Parameters
    ----------
    orchestrator
        Orchestrator of multinode services in the cluster.
    facts
        File with facts about the cluster, such as `kaiServed: true`.
    namespace
        Namespace of objects that name none (default: `default`); naming another one is an error.
    output
        Output format: `yaml` prints one document per object, `json` one List.
    """
    gc.disable()  # the process ends before a collection would pay
    from dynamoctl.authoring.render import print_objects

    print_objects(
        all_files(paths, files),
        orchestrator=orchestrator,
        settings=settings,
        facts=facts,
        is_recursive=is_recursive,
        namespace=namespace,
        output=output,
    )


def lint(
    *paths: Paths,
    files: Files = (),
    is_recursive: Recursive = False,
    settings: SettingsFile = None,
    namespace: Namespace = "",
    output: Annotated[Literal["table", "json", "sarif"], Parameter(name=["--output", "-o"])] = "table",
) -> int:
    """Check manifests offline with the rules of the webhooks.

    It prints all errors and warnings, and a summary on stderr. Exits with 1 if the
    webhooks would refuse anything; warnings alone are fine. It skips objects of
    other kinds.
    Example: dynamoctl lint -f manifests/

    Parameters
    ----------
    namespace
        Namespace of objects that name none (default: `default`).
    output
        Output format: `table` for people, `json`, or `sarif` for code hosts that annotate changes.
    """
    from dynamoctl.authoring import lint as command

    return command.lint(
        all_files(paths, files),
        settings=settings,
        namespace=namespace,
        output=output,
        is_recursive=is_recursive,
    )
