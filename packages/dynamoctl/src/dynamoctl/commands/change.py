"""Commands that compare, apply and convert files."""

from typing import Annotated

from cyclopts import CycloptsError, Parameter

from dynamoctl import options

_Force = Annotated[bool, Parameter(name="--force-conflicts")]


def diff(
    *paths: options.Paths,
    files: options.Files = (),
    where: options.Where = options.HERE,
    force: _Force = False,
    exit_code: bool = False,
    output: options.TextOutput = "text",
) -> int:
    """Show what files would change in the cluster, and which pods would restart.

    Nothing is changed: the API server makes a dry run, and the operator's own code renders
    the graph as it is and as it would be.
    Example: dynamoctl diff -f graph.yaml

    Parameters
    ----------
    force
        Compare as if fields of other field managers were taken over.
    exit_code
        Exit with 1 if anything would change, as `git diff --exit-code` does.
    """
    from dynamoctl.authoring.render import read_manifests
    from dynamoctl.change.diff import print_diff

    # Not in the event loop, where the first Ctrl-C would not end a read of standard input.
    manifests = read_manifests(options.all_files(paths, files))
    return options.run(print_diff(manifests, where, output, force=force, has_exit_code=exit_code))


def apply(
    *paths: options.Paths,
    files: options.Files = (),
    where: options.Where = options.HERE,
    force: _Force = False,
    wait: bool = False,
    timeout: Annotated[str, Parameter(metavar="DURATION")] = "30m",
) -> int:
    """Apply files on the server, and with --wait follow their graphs until they are ready.

    Exits with 1 and the cause if one is not ready in time.
    Example: dynamoctl apply -f graph.yaml --wait --timeout 1h

    Parameters
    ----------
    force
        Take over fields that another field manager owns, for example kubectl.
    wait
        Wait until the graphs, models and requests in the files are ready.
    timeout
        Longest wait, for example 90s, 30m or 2h.
    """
    from dynamoctl.authoring.render import read_manifests
    from dynamoctl.change.apply import print_applied
    from dynamoctl.screen import seconds

    limit = seconds(timeout)
    manifests = read_manifests(options.all_files(paths, files))  # before the event loop, as above
    return options.run(print_applied(manifests, where, force=force, wait=wait, timeout_seconds=limit))


def convert(
    *paths: options.Paths,
    files: options.Files = (),
    cluster: bool = False,
    where: options.Where = options.HERE,
    choices: options.ConvertOptions = options.CONVERSION,
) -> int:
    """Convert objects of the older generation to DynamoGraphDeployments.

    It reads DynamoDeployments and DynamoNimDeployments. A DynamoNim or DynamoNimRequest says
    which image a tag has, a ConfigMap with `bento.yaml` which services. It prints the new
    objects, and on stderr each field that it dropped or guessed.
    Example: dynamoctl convert -f old.yaml --graph-config bento.yaml > new.yaml

    Parameters
    ----------
    cluster
        Read the objects of a namespace in the cluster instead of files.
    """
    from dynamoctl.authoring.convert import convert as convert_manifests
    from dynamoctl.authoring.convert import convert_cluster
    from dynamoctl.authoring.render import read_manifests

    if not cluster:
        return int(convert_manifests(read_manifests(options.all_files(paths, files)), choices))
    if paths or files:
        raise CycloptsError(msg="--cluster reads no files")
    return options.run(convert_cluster(where, choices))
