"""The kinds that only checks read."""

from kube_runtime.kind import Kind
from kube_runtime.types.apiextensions import CustomResourceDefinition
from kube_runtime.types.meta import Resource, Struct


class StorageClass(Resource):
    """A StorageClass; whether it is the default one is an annotation."""

    KIND = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)


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


class QuotaStatus(Struct):
    """What a quota allows, and how much of it is used."""

    hard: dict[str, str] = {}
    used: dict[str, str] = {}


class ResourceQuota(Resource):
    """The quota of a namespace."""

    KIND = Kind("", "v1", "ResourceQuota", "resourcequotas")

    status: QuotaStatus = QuotaStatus()
