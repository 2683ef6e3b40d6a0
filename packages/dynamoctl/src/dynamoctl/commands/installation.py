"""Commands about the installation of an operator."""

from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from dynamoctl.options import ANYWHERE, CHECKS, CheckOptions, TextOutput, WhereAll, run

_OptionalApi: TypeAlias = Literal["grove", "kai", "leaderWorkerSet", "inferencePool", "istio"]
"""The keys of `shared.cluster.OPTIONAL_APIS`, which is not imported here."""


def install(
    *,
    print_: Annotated[bool, Parameter(name="--print")] = False,
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], metavar="NAME")] = "dynamo-system",
    image: Annotated[str, Parameter(metavar="IMAGE", show_default=False)] = "",
    restricted: bool = False,
    operator_only: bool = False,
    withhold: Annotated[tuple[_OptionalApi, ...], Parameter(show_default=False)] = (),
) -> None:
    """Print the objects of an installation for `kubectl apply --server-side -f -`.

    They equal the charts with default values; use the charts to change any other
    value.
    Example: dynamoctl install --print | kubectl apply --server-side -f -

    Parameters
    ----------
    print_
        Print the objects (the only mode).
    namespace
        Namespace of the operator.
    image
        Image of the operator (default: this version's).
    restricted
        Restrict the operator to its namespace.
    operator_only
        Leave out the namespace and the CRDs, for a rollback or a deletion.
    withhold
        Grant no permissions for this optional API, even where it is installed. Repeatable.
    """
    from dynamoctl.installation.manifests import Choices, print_manifests

    choices = Choices(namespace, image, restricted, operator_only, frozenset(withhold))
    print_manifests(choices, prints=print_)


def images(
    *,
    registry: Annotated[str, Parameter(metavar="HOST", show_default=False)] = "",
    output: Annotated[Literal["names", "pairs"], Parameter(name=["--output", "-o"])] = "names",
) -> None:
    """List the images that an installation may pull, one per line.

    Example: dynamoctl images --registry registry.example.com -o pairs

    Parameters
    ----------
    registry
        Registry in the place of the images' own, as with the chart's `global.imageRegistry`.
    output
        Output format: `pairs` adds each image's name in that registry, for a copy tool.
    """
    from dynamoctl.installation.checks import print_images

    print_images(registry, output)


def check(*, options: CheckOptions = CHECKS, output: TextOutput = "text") -> int:
    """Check a cluster for missing prerequisites (read-only).

    Each line is ok, warning or fail, with the remedy. Exits with 1 if any check
    fails, 3 if the cluster does not answer.
    Example: dynamoctl check --before-install
    """
    from dynamoctl.inspect.check import print_findings

    return run(print_findings(options, output))


def uninstall(*, where: WhereAll = ANYWHERE, dry_run: bool = False) -> int:
    """Remove the finalizers of a removed operator and list what remains.

    Run it after `helm uninstall`. It deletes nothing: no graph, no PVC, no CRD.
    While an operator still runs there, it exits with 1 and changes nothing.
    Example: dynamoctl uninstall --dry-run

    Parameters
    ----------
    dry_run
        Show what would change, without changing it.
    """
    from dynamoctl.change.uninstall import uninstall as remove_finalizers

    return run(remove_finalizers(where, is_dry=dry_run))
