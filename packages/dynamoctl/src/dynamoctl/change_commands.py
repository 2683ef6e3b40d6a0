"""The commands that compare, apply and convert files, as they are typed."""

from typing import Annotated, Literal

from cyclopts import CycloptsError, Parameter

from dynamoctl.cluster_options import HERE, Where
from dynamoctl.convert_options import DEFAULT, Choices
from dynamoctl.file_arguments import Files, Paths, given

_Force = Annotated[bool, Parameter(name="--force-conflicts")]


def diff(
    *paths: Paths,
    files: Files = (),
    where: Where = HERE,
    force: _Force = False,
    exit_code: bool = False,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Show what files would change in the cluster, and which pods that restarts.

    Nothing is changed: the API server makes a dry run, and the operator's own code renders
    the graph as it is and as it would be. Example: dynamoctl diff -f graph.yaml

    Parameters
    ----------
    paths
        YAML or JSON files, folders of such files, or `-` for stdin.
    files
        File, folder or `-`, as for kubectl. Repeatable.
    force
        Compare as if fields of other field managers were taken over.
    exit_code
        Exit with 1 if anything would change, as `git diff --exit-code` does.
    output
        Output format: `text` for people, `json` for machines.
    """
    from dynamoctl.diff import print_diff

    found = given(paths, files)
    return int(print_diff(found, where, output, force=force, has_exit_code=exit_code))


def apply(
    *paths: Paths,
    files: Files = (),
    where: Where = HERE,
    force: _Force = False,
    wait: bool = False,
    timeout: Annotated[str, Parameter(metavar="DURATION")] = "30m",
) -> int:
    """Apply files on the server, and with --wait follow the graphs in them until they are ready.

    Exits with 1 and the cause if one is not ready in time.
    Example: dynamoctl apply -f graph.yaml --wait --timeout 1h

    Parameters
    ----------
    paths
        YAML or JSON files, folders of such files, or `-` for stdin.
    files
        File, folder or `-`, as for kubectl. Repeatable.
    force
        Take over fields that another field manager owns, for example kubectl.
    wait
        Wait until the graphs, models and requests in the files are ready.
    timeout
        Longest wait, for example 90s, 30m or 2h.
    """
    from dynamoctl.ages import seconds
    from dynamoctl.apply import print_applied

    limit = seconds(timeout)
    found = given(paths, files)
    return int(print_applied(found, where, force=force, wait=wait, timeout_seconds=limit))


def convert(
    *paths: Paths,
    files: Files = (),
    cluster: bool = False,
    where: Where = HERE,
    choices: Choices = DEFAULT,
) -> int:
    """Convert objects of the older generation to DynamoGraphDeployments.

    It reads DynamoDeployments and DynamoNimDeployments. A DynamoNim or DynamoNimRequest says
    which image a tag has, a ConfigMap with `bento.yaml` which services. It prints the new
    objects, and on stderr each field that it dropped or guessed.
    Example: dynamoctl convert -f old.yaml --graph-config bento.yaml > new.yaml

    Parameters
    ----------
    paths
        YAML or JSON files, folders of such files, or `-` for stdin.
    files
        File, folder or `-`, as for kubectl. Repeatable.
    cluster
        Read the objects of a namespace in the cluster instead of files.
    """
    from dynamoctl.convert import convert_cluster, convert_files

    if not cluster:
        return int(convert_files(given(paths, files), choices))
    if paths or files:
        raise CycloptsError(msg="--cluster reads no files")
    return int(convert_cluster(where, choices))
