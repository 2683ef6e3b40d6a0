"""The base class of all kinds: the document, its problems, YAML and rendering.

An object holds its document, so unknown fields survive. It is immutable: each edit returns a new one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import StringIO
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeGuard, TypeVar

import msgspec

from dynamo_graphs.fields import ComponentFields, EnvVarSource, Json, Toleration
from dynamo_graphs.rows import Rows
from dynamo_graphs.spelling import in_api_case, snake
from dynamo_operator.component.api import GROUP
from dynamo_operator.shared.problems import Problem, ProblemKind
from kube_runtime.errors import ConfigErrors, leaves
from kube_runtime.types.meta import Metadata, Object, R, Resource, from_json, from_plain

if TYPE_CHECKING:
    from dynamo_graphs.offline import Expansion
    from dynamo_graphs.versions import Version
    from dynamo_operator.settings import RenderSettings
    from dynamo_operator.shared.cluster import Facts

A = TypeVar("A", bound="OfflineObject")

DEFAULT_VERSION: "Version" = "v1beta1"
"""The version in which new objects of a kind with two versions are written; a program may set it."""
_OWN_VERSION: "Version" = "v1alpha1"
"""The version of the documents that objects hold."""


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
    _version: "Version | None"
    """The version that it was read in, which it keeps; None for an object that a program declares."""
    _read: Object | None
    """The document of v1beta1 that it was read from and still says the same as."""

    @classmethod
    def from_dict(cls: type[A], document: Mapping[str, object]) -> A:
        """The object of a document, as `kubectl get -o json` has it. Its problems are not looked for.

        `to_dict` and `to_yaml` write the version of the document. Fields and paths of problems are named as
        in v1alpha1, to which a document of v1beta1 is converted.

        Raises:
            InvalidObject: it is an object of another kind, not JSON, or does not fit the schema of v1beta1.
        """
        read = plain(dict(document), "")
        return cls._of_read(read, _in_version(read, _OWN_VERSION))

    @classmethod
    def from_yaml(cls: type[A], text: str) -> A:
        """The object of a YAML or JSON text; `to_yaml` keeps its comments. Its problems are not looked for.

        The text may be of v1beta1, as for `from_dict`.

        Raises:
            InvalidObject: the text is unreadable, has not just one object of the kind, or does not fit the
                schema of v1beta1.
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
        made = cls._of_read(loaded[0], _in_version(loaded[0], _OWN_VERSION))
        made._source = (text, loaded[0])  # noqa: SLF001  of this class
        return made

    @classmethod
    def _stored(cls: type[A], document: Object) -> A:
        """The object of a document that the API server has accepted. Raises: InvalidObject."""
        from dynamo_operator.crds import is_later
        from dynamo_operator.shared.seen import seen

        return cls._of_read(document, seen(document) if is_later(document) else document)

    @classmethod
    def _of_read(cls: type[A], read: Object, document: Object) -> A:
        """The object that was read, which became `document`."""
        made = cls._made(document)
        is_later = read is not document
        made._version = "v1beta1" if is_later else _OWN_VERSION  # noqa: SLF001  of this class
        made._read = read if is_later else None  # noqa: SLF001
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
        made._version = made._read = None  # noqa: SLF001
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
        made._source, made._version = self._source, self._version  # noqa: SLF001  of this class
        return made

    def _start(self, name: str, namespace: str, spec: Mapping[str, object]) -> None:
        """`spec` has names in snake case. Raises: InvalidObject."""
        wrong: list[Problem] = []
        fields = wire_fields(spec, self._schema(), "spec", wrong)
        document: Object = {
            "apiVersion": self.TYPE.KIND.api_version,
            "kind": self.TYPE.KIND.name,
            "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
            "spec": with_fields({}, fields),
        }
        if problems := (*wrong, *self._step_problems(document)):
            raise InvalidObject(problems)
        self._document, self._source = document, None
        self._version = self._read = None

    @classmethod
    def _schema(cls) -> Object:
        """The schema of its spec."""
        from dynamo_operator.crds import whole_schema

        spec: Object = whole_schema(cls.TYPE)["properties"]["spec"]
        return spec

    def to_dict(self, version: "Version | None" = None) -> Object:
        """The document in a version, as a copy: by default the one that it was read in, else v1beta1.

        Raises:
            InvalidObject: it does not fit its schema, so that it cannot be converted.
        """
        wanted = version or self._version or DEFAULT_VERSION
        if self._read is not None and wanted == self._version:
            return plain(self._read, "")
        return plain(_in_version(self._document, wanted), "")

    def to_yaml(self, version: "Version | None" = None) -> str:
        """The document as YAML. Text that it was read from keeps its order, and comments on unchanged lines.

        Text of another version keeps its comments at the same fields. Text with anchors or merge keys is
        rewritten, without comments, once something has changed.

        Raises: as `to_dict`.
        """
        from dynamo_graphs.comments import converted_text
        from dynamo_graphs.output import write_yaml
        from dynamo_graphs.yaml_editor import edited

        document = self.to_dict(version)
        if self._source is not None:
            text, source = self._source
            if source.get("apiVersion") != document.get("apiVersion"):
                return converted_text(text, source, document)
            if (changed := edited(text, source, document)) is not None:
                return changed
        stream = StringIO()
        write_yaml([document], stream)
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
    ) -> Rows[Problem]:
        """Everything for which the operator would refuse it, by path; () if there is nothing.

        `settings` are those of the operator (default: `installed_settings()`), `facts` what the cluster has
        (default: LeaderWorkerSet and Istio).
        """
        return Rows(self._expanded(settings, facts).problems)

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
        """Whether both are of one kind and have the same document, in either version."""
        from dynamo_graphs.yaml_editor import is_same

        if not isinstance(other, OfflineObject) or type(self) is not type(other):
            return False
        if is_same(self._document, other._document):
            return True
        # In v1alpha1, the same pod can be written in several ways.
        with suppress(InvalidObject):
            return is_same(self.to_dict("v1beta1"), other.to_dict("v1beta1"))
        return False

    __hash__ = None  # type: ignore[assignment]  # a document is compared by value, and may be large

    def __repr__(self) -> str:
        from dynamo_operator.shared.conditions import is_ready, summary

        metadata = self._document.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        state = ""
        if isinstance(self._document.get("status"), dict):
            with suppress(InvalidObject):
                stated: Any = self._typed(self.TYPE)
                cause = summary(stated)
                state = ": ready" if is_ready(stated) else f": not ready ({cause.reason if cause else 'new'})"
        return f"<{type(self).__name__} {name}{state}>"


def wire_fields(given: Mapping[str, object], schema: Object, path: str, wrong: list[Problem]) -> Object:
    """Convert fields to JSON under the names of the API; None stays, to remove the field.

    Unknown fields are added to `wrong`.

    Raises:
        InvalidObject: a value is not JSON.
    """
    names = {snake(name): name for name in schema["properties"]}
    copied = {name: plain(value, f"{path}.{names.get(name, name)}") for name, value in given.items()}
    fields: Object = in_api_case(copied, schema, path, wrong)
    return fields


def with_fields(target: Object, fields: Object) -> Object:
    """Return the object with these fields; None removes a field."""
    return {key: value for key, value in {**target, **fields}.items() if value is not None}


def _in_version(document: Object, version: "Version") -> Object:
    """Raises: InvalidObject."""
    from dynamo_graphs.versions import has_versions, in_version
    from dynamo_graphs.written import unreadable
    from dynamo_operator.versions.shapes import ConversionError

    if document.get("apiVersion") == f"{GROUP}/{version}" or not has_versions(document):
        return document
    try:
        return in_version(document, version)
    except ConversionError as error:
        raise InvalidObject([unreadable(error)]) from error


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


class ServiceOptions(ComponentFields, total=False):
    """The same with short forms.

    `gpus` is the number of GPUs of each pod, `nodes` the number of pods, on a node each, of one replica;
    `node_gpus` is what the largest node has, 8 by default. `env` adds variables, with text or with a source
    such as `{"secret_key_ref": {"name": "hf", "key": "token"}}`. `mounts` adds PVCs by their name, with a
    directory, and `cache` is the PVC for compiled kernels. `image`, `command` and `args` are the main
    container's. `tolerations`, `node_selector` and `image_pull_secrets` (names) are the pods'.
    """

    gpus: int
    nodes: int
    node_gpus: int
    env: Mapping[str, str | EnvVarSource]
    mounts: Mapping[str, str]
    cache: str
    image: str
    command: Sequence[str]
    args: Sequence[str]
    tolerations: Sequence[Toleration | Json] | None
    node_selector: Mapping[str, str] | None
    image_pull_secrets: Sequence[str]


_CONTAINER = ("image", "command", "args")
_POD = ("tolerations", "node_selector")
_NODE_GPUS = 8
"""GPUs of the usual node: an HGX or DGX system."""


def with_options(
    service: Object, given: ServiceOptions, schema: Object, path: str, wrong: list[Problem]
) -> Object:
    """Return the service with these options; a pod spec is merged into its own, None removes a field.

    Options with the wrong type are omitted, and added to `wrong` like unknown fields.

    Raises: InvalidObject.
    """
    wrong += _misfits(given, path)
    options: dict[str, Any] = {
        name: value
        for name, value in given.items()
        if name not in _SHORT_FORMS or _SHORT_FORMS[name][0](value)
    }
    short = {
        name: options.pop(name)
        for name in ServiceOptions.__annotations__
        if name in options and name not in ComponentFields.__annotations__
    }
    fields = wire_fields(options, schema, path, wrong)
    long = wire_fields(_long_forms(short), schema, path, wrong)
    pod = fields.get("extraPodSpec")
    if isinstance(pod, dict):
        fields["extraPodSpec"] = _merged(service.get("extraPodSpec"), pod)
    made = with_fields(service, fields)
    for name, value in long.items():
        if isinstance(value, list):
            made[name] = with_named(made.get(name), value)
        else:
            made[name] = _merged(made.get(name), value)
    if "nodes" in short:
        nodes = short["nodes"]
        made = with_fields(made, {"multinode": None if nodes == 1 else {"nodeCount": nodes}})
    return made


def _long_forms(short: Mapping[str, Any]) -> Object:
    """The fields of short forms, in snake case."""
    main = {name: short[name] for name in _CONTAINER if name in short}
    pod: Object = {name: short[name] for name in _POD if name in short}
    if "image_pull_secrets" in short:
        pod["image_pull_secrets"] = [{"name": name} for name in short["image_pull_secrets"]]
    # The cache first, as the operator mounts that of a graph in v1beta1.
    mounts: list[Object] = []
    if "cache" in short:
        mounts.append({"name": short["cache"], "use_as_compilation_cache": True})
    mounts += [{"name": name, "mount_point": folder} for name, folder in short.get("mounts", {}).items()]
    variables = [
        {"name": name, ("value_from" if isinstance(value, Mapping) else "value"): value}
        for name, value in short.get("env", {}).items()
    ]
    long = {
        "resources": {"limits": {"gpu": str(short["gpus"])}} if "gpus" in short else {},
        "envs": variables,
        "volume_mounts": mounts,
        "extra_pod_spec": {**pod, **({"main_container": main} if main else {})},
    }
    return {name: value for name, value in long.items() if value}


def _misfits(options: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """Yield the problems of short forms, which have no schema: wrong types, and impossible sizes."""
    for name, (is_fit, expected) in _SHORT_FORMS.items():
        if name in options and not is_fit(options[name]):
            got = f"{options[name]}"[:_LONGEST]
            yield Problem(f"{path}.{name}", f'invalid value "{got}" (expected {expected})')
    gpus, largest = options.get("gpus"), options.get("node_gpus", _NODE_GPUS)
    if _is_number(gpus) and _is_number(largest) and gpus > largest > 0:
        nodes = -(-gpus // largest)
        yield Problem(
            f"{path}.gpus",
            f'invalid value "{gpus}": a pod runs on one node, which has {largest} GPUs (for multinode: '
            f"gpus={-(-gpus // nodes)}, nodes={nodes}; node_gpus={gpus} if there are such nodes)",
        )


def with_named(target: object, entries: Sequence[Mapping[str, Any]]) -> list[Any]:
    """A list with these entries in place of those with their names."""
    names = {entry["name"] for entry in entries}
    kept = target if isinstance(target, list) else ()
    return [*(old for old in kept if not (isinstance(old, dict) and old.get("name") in names)), *entries]


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


_LONGEST = 60
_LIST = (_is_list, 'a list of text, for example ["--max-model-len", "8192"]')
_NUMBER = (_is_number, "an integer, for example 2")
_SHORT_FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "gpus": _NUMBER,
    "node_gpus": _NUMBER,
    "env": (_is_mapping, 'names and text, for example {"HF_HOME": "/models"}'),
    "mounts": (_is_mapping, 'PVCs and directories, for example {"models": "/models"}'),
    "cache": (_is_text, "the name of a PVC"),
    "image": (_is_text, "the name of an image"),
    "command": _LIST,
    "args": _LIST,
    "image_pull_secrets": (_is_list, 'a list of Secrets, for example ["registry"]'),
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
