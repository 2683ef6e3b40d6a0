"""Commands about the installation of an operator."""

import sys
from typing import Annotated, Literal, TypeAlias

from cyclopts import App, CycloptsError, Parameter, validators

from dynamoctl.options import (
    ANYWHERE,
    CHECKS,
    HERE,
    CheckOptions,
    TextOutput,
    Where,
    WhereAll,
    YamlOutput,
    run,
)
from kube_runtime.commandline import application

_Version: TypeAlias = Literal["v1alpha1", "v1beta1"]
_OptionalApi: TypeAlias = Literal["grove", "kai", "leaderWorkerSet", "inferencePool", "istio"]
"""The keys of `shared.cluster.OPTIONAL_APIS`, which is not imported here."""


def install() -> App:
    """`dynamoctl install …`."""
    tool = application("install")
    tool.default(_install)
    tool.command(_crds, name="crds")
    tool.command(_images, name="images")
    tool.command(_cleanup, name="cleanup")
    tool.command(_migrate, name="migrate")
    return tool


def _install(
    *,
    print_: Annotated[bool, Parameter(name="--print")] = False,
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], metavar="NAME")] = "dynamo-system",
    image: Annotated[str, Parameter(metavar="IMAGE", show_default=False)] = "",
    restricted: bool = False,
    operator_only: bool = False,
    withhold: Annotated[tuple[_OptionalApi, ...], Parameter(show_default=False)] = (),
    stored: Annotated[_Version | None, Parameter(show_default=False)] = None,
) -> None:
    """Print the objects of an installation, its CRDs or images.

    Pipe them into `kubectl apply --server-side -f -`. They equal the charts with
    default values; use the charts to change any other value.
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
    stored
        Version in which objects are stored (default: v1beta1, with --restricted v1alpha1). Keep that of the
        cluster while an older operator runs there.
    """
    from dynamo_graphs.output import write_yaml
    from dynamo_operator.shared.problems import is_dns_label
    from dynamoctl.installation.manifests import Choices, manifests
    from kube_runtime.errors import ConfigError

    if not is_dns_label(namespace):
        raise CycloptsError(f'invalid namespace "{namespace}" (expected a name, for example dynamo-system)')
    if not print_:
        advice = "add --print and pipe the output into: kubectl apply --server-side -f -"
        raise ConfigError("dynamoctl install", f"does not change a cluster; {advice}")
    choices = Choices(namespace, image, restricted, operator_only, frozenset(withhold), stored or "")
    write_yaml(manifests(choices), sys.stdout)


def _crds(
    *kinds: Annotated[str, Parameter(name="KIND", show_default=False)],
    legacy: bool = False,
    conversion: Annotated[str, Parameter(metavar="ADDRESS", show_default=False)] = "",
    stored: Annotated[_Version | None, Parameter(show_default=False)] = None,
    deprecation_warning: bool = False,
    output: YamlOutput = "yaml",
) -> None:
    """Print the CustomResourceDefinitions for `kubectl apply --server-side -f -`.

    Example: dynamoctl install crds | kubectl apply --server-side -f -

    Parameters
    ----------
    kinds
        Kinds, plurals or short names, for example dgd (default: all of today).
    legacy
        Add those of the older generation, such as DynamoDeployment.
    conversion
        Serve both versions, converted by the operator's webhooks at this address: NAMESPACE/SERVICE or a URL.
        Without it only the stored version is served.
    stored
        Version in which objects are stored (default: v1beta1 with --conversion, v1alpha1 without).
    deprecation_warning
        Mark v1alpha1 as deprecated, with --conversion: the API server sends a warning with each answer in it.
    output
        Output format: `yaml` prints one document per object, `json` one List.
    """
    from dynamo_graphs.output import write_json, write_yaml
    from dynamo_legacy.api import RESOURCES as LEGACY
    from dynamo_operator.crds import custom_resource_definition
    from dynamoctl.authoring.manifest import selected

    webhook = None
    if conversion:
        from dynamoctl.installation.manifests import conversion_at

        webhook = conversion_at(conversion)
    chosen = dict.fromkeys((*selected(kinds), *(LEGACY if legacy else ())))
    warns = deprecation_warning
    definitions = [
        custom_resource_definition(resource, webhook, stored or "", warns=warns) for resource in chosen
    ]
    (write_yaml if output == "yaml" else write_json)(definitions, sys.stdout)


def _images(
    *,
    registry: Annotated[str, Parameter(metavar="HOST", show_default=False)] = "",
    output: Annotated[Literal["names", "pairs"], Parameter(name=["--output", "-o"])] = "names",
) -> None:
    """List the images that an installation may pull, one per line.

    Example: dynamoctl install images --registry registry.example.com -o pairs

    Parameters
    ----------
    registry
        Registry in the place of the images' own, as with the chart's `global.imageRegistry`.
    output
        Output format: `pairs` adds each image's name in that registry, for a copy tool.
    """
    from dynamo_operator import version
    from dynamoctl.installation.checks import images as of_version
    from kube_runtime.errors import ConfigError

    if output == "pairs" and not registry:
        text = "--output=pairs requires --registry, the registry to copy the images to"
        raise ConfigError("dynamoctl install images", text)
    for source, target in zip(of_version(version()), of_version(version(), registry), strict=True):
        print(target if output == "names" else f"{source} {target}")


def check(*, options: CheckOptions = CHECKS, output: TextOutput = "text") -> int:
    """Check a cluster for missing prerequisites (read-only).

    Each line is ok, warning or fail, with the remedy. Exits with 1 if any check
    fails, 3 if the cluster does not answer.
    Example: dynamoctl check --before-install
    """
    from dynamoctl.inspect.check import print_findings

    return run(print_findings(options, output))


def _cleanup(*, where: WhereAll = ANYWHERE, dry_run: bool = False) -> int:
    """Remove the finalizers of a removed operator and list what remains.

    Run it after `helm uninstall`. It deletes nothing: no graph, no PVC, no CRD.
    While an operator still runs there, it exits with 1 and changes nothing.
    Example: dynamoctl install cleanup --dry-run

    Parameters
    ----------
    dry_run
        Show what would change, without changing it.
    """
    from dynamoctl.change.uninstall import uninstall as remove_finalizers

    return run(remove_finalizers(where, is_dry=dry_run))


def _migrate(
    *,
    where: Where = HERE,
    rate: Annotated[float, Parameter(metavar="NUMBER", validator=validators.Number(gt=0, lte=1000))] = 20.0,
) -> int:
    """Rewrite graphs that are stored in a version which the CRDs store no longer.

    Fields, pods and field managers stay as they are. It may be interrupted and started again. Then the CRDs
    list one stored version. The operator does the same with --migrate-stored-objects.
    Exits with 1 if the API server refuses an object.
    Example: dynamoctl install migrate

    Parameters
    ----------
    rate
        Objects per second.
    """
    from dynamoctl.change.migration import migrate

    if where.namespace:
        raise CycloptsError("install migrate is about all namespaces (drop --namespace)")
    return run(migrate(where, rate))
