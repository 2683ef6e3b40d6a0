"""Read the objects of a cluster. All writes of its own are dry runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from dynamo_operator.names import FIELD_MANAGER
from dynamo_operator.shared.cluster import OPTIONAL_APIS
from dynamoctl.installation.checks import CheckResult, Finding
from dynamoctl.installation.permissions import RULES, Feature, Name, Rule, Where
from dynamoctl.screen import warn
from kube_runtime.client.client import APPLY_PATCH, Client, Request, Transport, once
from kube_runtime.decode import UNREADABLE, key_in
from kube_runtime.errors import ApiError, DecodeError, NotFound
from kube_runtime.kind import Key, Kind, Object, key_of
from kube_runtime.types.kinds import (
    CustomResourceDefinition,
    SelfSubjectAccessReview,
    SubjectAccessReview,
    question,
)
from kube_runtime.types.meta import R, Resource, Struct

_DRY = {"dryRun": "All", "fieldManager": FIELD_MANAGER}


class StoredObject(Resource):
    """An object whose spec and status are JSON values, so that it decodes whatever is in them."""

    READ_LEVELS = 5  # what columns show: the fields of a condition or of an endpoint are in level 4

    spec: Any = None
    status: Any = None


@cache
def stored_type(kind: Kind) -> type[StoredObject]:
    """The type of the stored objects of a kind."""
    return type(f"Stored{kind.name}", (StoredObject,), {"KIND": kind, "__module__": __name__})


class Reading:
    """Reads of one API server. Every method raises `ApiError`, `DecodeError` and `Unreachable`.

    `unreadable` are the objects that lists left out, in words; a warning names each of them once.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.unreadable: dict[str, None] = {}
        self.client = Client(transport, field_manager=FIELD_MANAGER, waits=False)

    async def all(
        self, type_: type[R], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> list[R]:
        """Every object of a kind that fits its type; an empty namespace means all."""
        objects: list[R] = []
        async for page in self.client.pages(
            type_, namespace=namespace, labels=labels, fields=fields
        ):
            objects += page.items
            for error in page.broken:
                self._report(error)
        return objects

    async def one(self, type_: type[R], key: Key) -> R | None:
        """The object; None if it does not exist."""
        try:
            return await self.client.get(type_, key)
        except NotFound:
            return None

    async def all_raw(self, kind: Kind, namespace: str, *, labels: str = "") -> list[Object]:
        """Every object of a kind as it is stored; an empty namespace means all."""
        bodies: list[Object] = []
        async for page in self.client.raw_pages(kind, namespace=namespace, labels=labels):
            for item in page:
                try:
                    body = decoded(item, kind, key_in(item))
                except DecodeError as error:
                    self._report(error)
                else:
                    bodies.append({"apiVersion": kind.api_version, "kind": kind.name, **body})
        return bodies

    async def tried(self, kind: Kind, body: Object) -> str:
        """Dry-run the creation of an object; the error of the API server, "" if it accepts it."""
        path = kind.path(key_of(body).namespace)
        try:
            await self.send(Request("POST", path, _DRY, msgspec.json.encode(body)), kind)
        except ApiError as error:
            return str(error)
        return ""

    async def applied(self, kind: Kind, body: Object) -> Object:
        """Dry-run a forced apply; the object as it would be."""
        path = kind.path(*key_of(body))
        query = {**_DRY, "force": "true"}
        request = Request("PATCH", path, query, msgspec.json.encode(body), APPLY_PATCH)
        return await self.send(request, kind)

    async def raw(self, kind: Kind, key: Key) -> Object | None:
        """The whole object; None if it does not exist."""
        try:
            return await self.send(Request("GET", kind.path(*key)), kind, key)
        except NotFound:
            return None

    async def send(self, request: Request, kind: Kind, key: Key | None = None) -> Object:
        """Send a request about a kind or one of its objects; the JSON of the answer."""
        return decoded(await once(self.transport, request, kind, key), kind, key)

    def _report(self, error: DecodeError) -> None:
        text = str(error)
        if text not in self.unreadable:
            self.unreadable[text] = None
            warn(f"left out: {text}")


def decoded(body: bytes | msgspec.Raw, kind: Kind, key: Key | None) -> Object:
    """The JSON of an object.

    Raises: DecodeError.
    """
    try:
        return msgspec.json.decode(body, type=Object)
    except UNREADABLE as error:
        raise DecodeError(kind, key, str(error)) from error


async def missing(reading: Reading, user: str, namespace: str) -> list[str]:
    """The permissions that a user lacks, of the rules that every installation has.

    "" as `user` is the current user. `namespace` is that of a restricted operator, "" for a cluster-wide one.
    """
    lacks: list[str] = []
    for asked in _asked(namespace):
        if not await _may(reading, user, asked):
            lacks.append(f"{asked['verb']} {Key(asked['group'], asked['resource'])}")
    return lacks


async def may_read(reading: Reading, user: str, kind: Kind, namespace: str) -> bool:
    """Whether a user ("": the current one) may list and watch a kind in a namespace ("": in all)."""
    asked = {"group": kind.group, "resource": kind.plural}
    if namespace and kind.namespaced:
        asked["namespace"] = namespace
    for verb in ("list", "watch"):
        if not await _may(reading, user, {**asked, "verb": verb}):
            return False
    return True


async def _may(reading: Reading, user: str, attributes: dict[str, str]) -> bool:
    asked: Object = {"resourceAttributes": attributes}
    if not user:
        review = question(SelfSubjectAccessReview.KIND, asked)
        return (await reading.client.create(SelfSubjectAccessReview, review)).status.allowed
    groups = ["system:serviceaccounts", "system:authenticated"]
    review = question(SubjectAccessReview.KIND, {**asked, "user": user, "groups": groups})
    return (await reading.client.create(SubjectAccessReview, review)).status.allowed


def _checkable(namespace: str) -> Sequence[Rule]:
    """The rules that are the same in all installations: those without names that an installation chooses."""
    modes = {Feature.ALWAYS, Feature.RESTRICTED if namespace else Feature.CLUSTER_WIDE}
    return [
        rule
        for rule in RULES
        if rule.where is Where.GRAPHS
        and rule.feature in modes
        and not any(isinstance(name, Name) for name in rule.names)
    ]


def _asked(namespace: str) -> Iterator[dict[str, str]]:
    for rule in _checkable(namespace):
        for qualified in rule.resources:
            resource, _, subresource = qualified.partition("/")
            for verb in rule.verbs:
                attributes = {"group": rule.group, "resource": resource, "verb": verb}
                attributes |= {"namespace": namespace, "subresource": subresource}
                attributes |= {"name": str(rule.names[0])} if rule.names else {}
                yield {key: value for key, value in attributes.items() if value or key == "group"}


DEFINITIONS = "Definitions"
_MONITORING = "monitoring.coreos.com"
_VALUES = "dynamo-operator"
_REMEDY = (
    "helm upgrade --install dynamo-crds, or: dynamoctl crds | kubectl apply --server-side -f -"
)


class DefinedVersion(Struct):
    """A version of a kind, and whether it is served."""

    name: str = ""
    served: bool = False


class DefinitionSpec(Struct):
    """The versions of a kind."""

    versions: tuple[DefinedVersion, ...] = ()


class DefinitionStatus(Struct):
    """The versions in which objects may still be stored."""

    stored_versions: tuple[str, ...] = ()


class Definition(Resource):
    """A CRD with its versions, without its schemas, which take megabytes."""

    KIND = CustomResourceDefinition.KIND

    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()


@dataclass(frozen=True, slots=True)
class Project:
    """Another project: the kinds that we use, and how to enable its use.

    `granted_by` is the chart value that lets the operator read the kinds; "" if it does not read them.
    """

    name: str
    kinds: tuple[Kind, ...]
    use: str
    granted_by: str = ""


def definitions(
    ours: Sequence[Kind], present: Mapping[str, Definition], *, is_before: bool
) -> Finding:
    """Whether our CRDs are installed, in our version. Before an installation all may be missing."""
    missing = [str(kind) for kind in ours if str(kind) not in present]
    if is_before and len(missing) == len(ours):
        return Finding(DEFINITIONS, CheckResult.OK, "none is installed yet")
    if missing:
        return Finding(DEFINITIONS, CheckResult.FAIL, f"missing: {', '.join(missing)}", _REMEDY)
    unserved = [str(kind) for kind in ours if not _serves(present[str(kind)], kind.version)]
    if unserved:
        text = f"not served in {ours[0].version}: {', '.join(unserved)}"
        return Finding(DEFINITIONS, CheckResult.FAIL, text, _REMEDY)
    lost = {str(kind): _unreadable(present[str(kind)]) for kind in ours}
    unreadable = [f"{name} in {', '.join(versions)}" for name, versions in lost.items() if versions]
    if unreadable:
        text = (
            f"objects may be stored in versions that are no longer defined: {'; '.join(unreadable)}"
        )
        remedy = "see migrating stored versions in the Kubernetes documentation"
        return Finding(DEFINITIONS, CheckResult.WARNING, text, remedy)
    return Finding(DEFINITIONS, CheckResult.OK, f"all {len(ours)} are installed")


def other_projects(
    present: Mapping[str, Definition],
    projects: Sequence[Project],
    forbidden: Mapping[Kind, Sequence[str]] | None = None,
) -> list[Finding]:
    """The installed projects, and whether the operator uses them.

    `forbidden` has the ServiceAccounts of operators that may not read a kind; None if no operator is known.
    """
    return [finding for project in projects if (finding := _project(present, project, forbidden))]


def _project(
    present: Mapping[str, Definition],
    project: Project,
    forbidden: Mapping[Kind, Sequence[str]] | None,
) -> Finding | None:
    there = [kind for kind in project.kinds if str(kind) in present]
    if not there:
        return None
    missing = [str(kind) for kind in project.kinds if kind not in there]
    if missing:
        text = f"partly installed; missing: {', '.join(missing)}"
        return Finding(
            project.name, CheckResult.WARNING, text, ("the operator uses it only if it is complete")
        )
    old = [kind for kind in there if not _serves(present[str(kind)], kind.version)]
    if old:
        text = f"{old[0]} is not served in {old[0].version}, the version that the operator uses"
        return Finding(
            project.name,
            CheckResult.WARNING,
            text,
            (f"install a {project.name} version that serves it"),
        )
    if forbidden is None or not project.granted_by:
        return Finding(project.name, CheckResult.OK, f"installed; {project.use}")
    withheld = [kind for kind in project.kinds if forbidden.get(kind)]
    if withheld:
        accounts = ", ".join(sorted({account for kind in withheld for account in forbidden[kind]}))
        kinds = ", ".join(str(kind) for kind in withheld)
        text = f"installed, but {accounts} may not read {kinds}: the operator does not use it"
        remedy = f"to use it, set {project.granted_by}"
        return Finding(project.name, CheckResult.WARNING, text, remedy)
    return Finding(project.name, CheckResult.OK, "installed, and the operator may use it")


def _serves(definition: Definition, version: str) -> bool:
    return any(defined.name == version and defined.served for defined in definition.spec.versions)


def _unreadable(definition: Definition) -> list[str]:
    defined = {version.name for version in definition.spec.versions}
    return [version for version in definition.status.stored_versions if version not in defined]


PROJECTS = (
    *(
        Project(
            api.title,
            api.kinds,
            f"the operator uses it unless {api.value} is false",
            granted_by=f"{api.value}=true",
        )
        for api in OPTIONAL_APIS
    ),
    Project(
        "Prometheus operator",
        (
            Kind(_MONITORING, "v1", "ServiceMonitor", "servicemonitors"),
            Kind(_MONITORING, "v1", "PodMonitor", "podmonitors"),
            Kind(_MONITORING, "v1", "PrometheusRule", "prometheusrules"),
        ),
        f"to be scraped, see {_VALUES}.metricsService.serviceMonitor.enabled",
    ),
    Project(
        "cert-manager",
        (
            Kind("cert-manager.io", "v1", "Certificate", "certificates"),
            Kind("cert-manager.io", "v1", "Issuer", "issuers"),
        ),
        f"to use it, set {_VALUES}.webhook.certManager.enabled",
    ),
)
