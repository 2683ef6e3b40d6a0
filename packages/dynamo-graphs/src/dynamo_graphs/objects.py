"""The base class of all kinds: the document, its problems, YAML and rendering.

An object holds its document, so unknown fields survive. It is immutable: each edit returns a new one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, ClassVar, Literal, TypedDict, TypeGuard, TypeVar, cast

import msgspec

from dynamo_operator.component import api
from dynamo_operator.graph.api import PersistentVolumeClaimSpec, Restart
from dynamo_operator.shared.problems import Problem, ProblemKind
from kube_runtime.errors import ConfigErrors, leaves
from kube_runtime.types.meta import Metadata, Object, R, Resource, from_json, from_plain

if TYPE_CHECKING:
    from dynamo_graphs.offline import Expansion
    from dynamo_operator.settings import RenderSettings
    from dynamo_operator.shared.cluster import Facts

A = TypeVar("A", bound="OfflineObject")


class InvalidObject(ValueError):
    """The operator would refuse the object. The message has a line for each of its `problems`."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class OfflineObject:
    """The part of an object of one of our kinds that needs no cluster."""

    TYPE: ClassVar[type[Resource]]
    """The struct of its kind."""

    _document: Object
    _source: tuple[str, Object] | None
    """The YAML text that it was read from, and the document in it."""

    @classmethod
    def from_dict(cls: type[A], document: Mapping[str, object]) -> A:
        """The object of a document, as `kubectl get -o json` has it. Its problems are not looked for.

        Raises:
            InvalidObject: it is an object of another kind, or not JSON.
        """
        return cls._made(plain(dict(document), ""))

    @classmethod
    def from_yaml(cls: type[A], text: str) -> A:
        """The object of a YAML or JSON text; `to_yaml` keeps its comments. Its problems are not looked for.

        Raises:
            InvalidObject: the text is unreadable, or has not just one object of the kind.
        """
        from dynamo_operator.documents import documents

        text = text.removeprefix("\ufeff")
        try:
            loaded = [document.value for document in documents("text", text)]
        except ConfigErrors as group:
            raise InvalidObject(Problem(error.source, error.message) for error in leaves(group)) from group
        if len(loaded) != 1 or not isinstance(loaded[0], dict):
            message = f"expected one object of kind {cls.TYPE.KIND.name}, found {len(loaded)}"
            raise InvalidObject([Problem("document", message)])
        made = cls._made(loaded[0])
        made._source = (text, loaded[0])  # noqa: SLF001  of this class
        return made

    @classmethod
    def _made(cls: type[A], document: Object) -> A:
        kind = cls.TYPE.KIND
        for field, expected in (("apiVersion", kind.api_version), ("kind", kind.name)):
            if document.get(field) != expected:
                message = f'expected "{expected}", found "{document.get(field)}"'
                raise InvalidObject([Problem(field, message, ProblemKind.NOT_SUPPORTED)])
        made = cls.__new__(cls)
        made._document, made._source = document, None  # noqa: SLF001  of this class
        return made

    def _edited(self: A, document: Object, wrong: Iterable[Problem] = ()) -> A:
        """`wrong` are problems that the edit has. Raises: InvalidObject with the problems that it adds."""
        before = set(self._step_problems(self._document))
        misfits = tuple(wrong)
        # After a misfit, rules would only report what follows from it.
        problems = (*misfits, *(_schema_problems if misfits else self._step_problems)(document))
        if added := [problem for problem in problems if problem not in before]:
            raise InvalidObject(added)
        made = self._made(document)
        made._source = self._source  # noqa: SLF001  of this class
        return made

    def _start(self, name: str, namespace: str, spec: Object) -> None:
        """Raises: InvalidObject."""
        document: Object = {
            "apiVersion": self.TYPE.KIND.api_version,
            "kind": self.TYPE.KIND.name,
            "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
            "spec": with_fields({}, spec),
        }
        if problems := self._step_problems(document):
            raise InvalidObject(problems)
        self._document, self._source = document, None

    def to_dict(self) -> Object:
        """The document, as a copy."""
        return plain(self._document, "")

    def to_yaml(self) -> str:
        """The document as YAML. Text that it was read from keeps its order, and comments on unchanged lines.

        Text with anchors or merge keys is rewritten, without comments, once something has changed.
        """
        from dynamo_graphs.output import write_yaml
        from dynamo_graphs.yaml_editor import edited

        if self._source is not None:
            text = edited(*self._source, self._document)
            if text is not None:
                return text
        stream = StringIO()
        write_yaml([self._document], stream)
        return stream.getvalue().removeprefix("---\n")

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """`metadata.namespace`; "" if it has none yet."""
        return self.metadata.namespace

    @property
    def metadata(self) -> Metadata:
        """The metadata as a struct."""
        return from_plain(self._part("metadata"), Metadata)

    def problems(
        self, settings: "RenderSettings | None" = None, facts: "Facts | None" = None
    ) -> tuple[Problem, ...]:
        """Everything for which the operator would refuse it, by path; () if there is nothing.

        `settings` are those of the operator (default: `installed_settings()`), `facts` what the cluster has
        (default: LeaderWorkerSet and Istio).
        """
        return self._expanded(settings, facts).problems

    def render(
        self, settings: "RenderSettings | None" = None, facts: "Facts | None" = None
    ) -> tuple[Object, ...]:
        """The objects that the operator would apply for it, by its own code; () for a kind that has none.

        An object without a namespace is rendered for `default`.

        Raises:
            InvalidObject: it has problems.
        """
        expansion = self._expanded(settings, facts)
        if expansion.problems:
            raise InvalidObject(expansion.problems)
        return expansion.objects

    def _part(self, field: str) -> Object:
        """A copy of `metadata` or `spec`. Raises: InvalidObject if it is not an object."""
        part = self._document.get(field)
        if part is None or isinstance(part, dict):
            return dict(part or {})
        raise InvalidObject([Problem(field, f"expected an object, found {type(part).__name__}")])

    def _expanded(self, settings: "RenderSettings | None", facts: "Facts | None") -> "Expansion":
        from dynamo_graphs.offline import expanded, installed_settings
        from dynamo_operator.shared.cluster import Facts

        document, metadata = self._document, self._document.get("metadata")
        if isinstance(metadata, dict) and not metadata.get("namespace"):
            document = {**document, "metadata": {**metadata, "namespace": "default"}}
        facts = facts or Facts(lws_served=True, istio_served=True)
        return expanded(document, facts, settings or installed_settings())

    def _step_problems(self, document: Object) -> tuple[Problem, ...]:
        """The problems of a document that may be incomplete."""
        return _schema_problems(document)

    def _typed(self, type_: type[R]) -> R:
        """With the defaults of the API server. Raises: InvalidObject."""
        from dynamo_operator.crds import defaulted

        try:
            return from_json(msgspec.json.encode(defaulted(self._document)), type_)
        except (msgspec.ValidationError, TypeError) as error:
            problems = _schema_problems(self._document)
            raise InvalidObject(problems or [Problem("document", str(error))]) from error

    def __eq__(self, other: object) -> bool:
        """Whether both are of one kind and have the same document."""
        from dynamo_graphs.yaml_editor import is_same

        if not isinstance(other, OfflineObject) or type(self) is not type(other):
            return False
        return is_same(self._document, other._document)

    __hash__ = None  # type: ignore[assignment]  # a document is compared by value, and may be large

    def __repr__(self) -> str:
        metadata = self._document.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return f"<{type(self).__name__} {name}>"


def wire_fields(type_: type[msgspec.Struct], given: Mapping[str, object], path: str) -> Object:
    """Convert fields to JSON under the names of the API; None stays, to remove the field.

    Raises:
        InvalidObject: a field is unknown, or a value is not JSON.
    """
    wire_names = {field.name: field.encode_name for field in msgspec.structs.fields(type_)}
    fields: Object = {}
    for name, value in given.items():
        if name not in wire_names:
            from dynamo_operator.shared.problems import nearest

            message = f"unknown field{nearest(name, wire_names)}"
            raise InvalidObject([Problem(f"{path}.{name}", message, ProblemKind.UNKNOWN_FIELD)])
        fields[wire_names[name]] = plain(value, f"{path}.{wire_names[name]}")
    return fields


def with_fields(target: Object, fields: Object) -> Object:
    """Return the object with these fields; None removes a field."""
    return {key: value for key, value in {**target, **fields}.items() if value is not None}


def _schema_problems(document: Object) -> tuple[Problem, ...]:
    from dynamo_graphs.schema import schema_problems

    return schema_problems(document)


def plain(value: object, path: str) -> Object:
    """Copy a value as JSON.

    Raises:
        InvalidObject: it is not JSON.
    """
    try:
        decoded: Object = msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidObject([Problem(path, f"expected JSON: {error}")]) from error
    else:
        return decoded


Backend = Literal["vllm", "sglang", "trtllm"]
"""The inference engines."""


# The structs of the kinds document the fields, and `make docs` writes these lines from them. Plain JSON with
# the field names of the API is accepted in place of a struct.
class ComponentFields(TypedDict, total=False):
    """Fields of `ComponentSpec`: a service of a graph, or a component on its own."""

    annotations: dict[str, str]
    labels: dict[str, str]
    service_name: str | None
    component_type: str | None
    sub_component_type: str | None
    dynamo_namespace: str | None
    global_dynamo_namespace: bool
    resources: api.Resources | None
    autoscaling: Object | None
    envs: tuple[Object, ...]
    env_from_secret: str | None
    volume_mounts: tuple[api.VolumeMount, ...]
    ingress: api.IngressSpec | None
    model_ref: api.ModelReference | None
    shared_memory: api.SharedMemory | None
    extra_pod_metadata: api.ExtraPodMetadata | None
    extra_pod_spec: Object | None
    liveness_probe: Object | None
    readiness_probe: Object | None
    replicas: int | None
    multinode: api.Multinode | None
    scaling_adapter: api.ScalingAdapterSwitch | None
    disruption_budget: api.DisruptionBudget | None
    epp_config: api.EppConfig | None
    min_available: int | None
    runtime_version_override: str | None
    frontend_sidecar: Object | None
    topology_constraint: Object | None
    gpu_memory_service: Object | None
    failover: Object | None
    checkpoint: Object | None


class ServiceOptions(ComponentFields, total=False):
    """The same with short forms.

    `gpus` is the number of GPUs of each pod, `nodes` the number of pods, on a node each, of one replica.
    `env` adds variables; `image`, `command` and `args` are the main container's.
    """

    gpus: int
    nodes: int
    env: Mapping[str, str]
    image: str
    command: Sequence[str]
    args: Sequence[str]


class GraphFields(TypedDict, total=False):
    """Fields of `DynamoGraphDeploymentSpec` other than the services."""

    pvcs: tuple[PersistentVolumeClaimSpec, ...]
    envs: tuple[Object, ...]
    backend_framework: str | None
    restart: Restart | None
    replicas: int | None
    labels: dict[str, str]
    annotations: dict[str, str]
    progress_deadline_seconds: int | None
    priority_class_name: str | None
    topology_constraint: Object | None
    experimental: Object | None


_CONTAINER = ("image", "command", "args")
_SHORT = ("gpus", "nodes", "env", *_CONTAINER)


def with_options(service: Object, given: ServiceOptions, path: str) -> Object:
    """Return the service with these options; a pod spec is merged into its own, None removes a field.

    Options with the wrong type (see `misfits`) are omitted.

    Raises: InvalidObject.
    """
    options = _fitting(given)
    fields = wire_fields(
        api.ComponentSpec, {key: value for key, value in options.items() if key not in _SHORT}, path
    )
    pod = fields.get("extraPodSpec")
    if isinstance(pod, dict):
        fields["extraPodSpec"] = _merged(service.get("extraPodSpec"), pod)
    made = with_fields(service, fields)
    if "gpus" in options:
        gpus = {"limits": {"gpu": str(options["gpus"])}}
        made["resources"] = _merged(made.get("resources"), gpus)
    if "nodes" in options:
        nodes = options["nodes"]
        made = with_fields(made, {"multinode": None if nodes == 1 else {"nodeCount": nodes}})
    if env := options.get("env"):
        listed = made.get("envs")
        others = [
            variable
            for variable in (listed if isinstance(listed, list) else ())
            if not (isinstance(variable, dict) and variable.get("name") in env)
        ]
        made["envs"] = [*others, *({"name": key, "value": value} for key, value in env.items())]
    main: Object = {
        name: list(value) if _is_list(value) else value
        for name, value in options.items()
        if name in _CONTAINER
    }
    if main:
        made["extraPodSpec"] = _merged(made.get("extraPodSpec"), {"mainContainer": main})
    return plain(made, path)


def over(defaults: ServiceOptions, given: ServiceOptions) -> ServiceOptions:
    """Merge options over defaults; variables, pod specs and arguments are combined."""
    both: ServiceOptions = {**defaults, **given}
    fit = _fitting(given)
    if "env" in fit:
        both["env"] = {**defaults.get("env", {}), **fit["env"]}
    if "args" in fit:
        both["args"] = [*defaults.get("args", ()), *fit["args"]]
    pod = given.get("extra_pod_spec")
    if isinstance(pod, dict):
        both["extra_pod_spec"] = _merged(defaults.get("extra_pod_spec"), pod)
    return both


def misfits(options: Mapping[str, object], path: str) -> Iterator[Problem]:
    """Yield the problems of short forms, which have no schema: values of the wrong type."""
    for name, (is_fit, expected) in _SHORT_FORMS.items():
        if name in options and not is_fit(options[name]):
            got = f"{options[name]}"[:_LONGEST]
            yield Problem(f"{path}.{name}", f'invalid value "{got}" (expected {expected})')


def _fitting(options: ServiceOptions) -> ServiceOptions:
    fitting = {
        name: value
        for name, value in options.items()
        if name not in _SHORT_FORMS or _SHORT_FORMS[name][0](value)
    }
    return cast("ServiceOptions", fitting)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


_LONGEST = 60
_LIST = (_is_list, 'a list of text, for example ["--max-model-len", "8192"]')
_SHORT_FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "gpus": (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
        "an integer, for example 2",
    ),
    "env": (lambda value: isinstance(value, Mapping), 'names and text, for example {"HF_HOME": "/models"}'),
    "image": (lambda value: isinstance(value, str), "the name of an image"),
    "command": _LIST,
    "args": _LIST,
}
"""For each short form: whether a value has its type, and the expectation in messages."""


def _merged(target: object, fields: Object) -> Object:
    """Merge fields into a copy of an object; None removes a field."""
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in fields.items():
        own = result.get(key)
        both = _merged(own, value) if isinstance(own, dict) and isinstance(value, dict) else value
        result[key] = both
    return {key: value for key, value in result.items() if value is not None}
