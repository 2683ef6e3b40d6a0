"""scheduling.volcano.sh/v1beta1: PodGroup."""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Condition, Resource, Struct


class PodGroupStatus(Struct):
    """What Volcano says about placing the group."""

    conditions: tuple[Condition, ...] = ()


class PodGroup(Resource):
    """Pods that are placed together or not at all."""

    KIND = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodGroupStatus = PodGroupStatus()
