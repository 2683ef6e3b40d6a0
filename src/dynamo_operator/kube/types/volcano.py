"""scheduling.volcano.sh/v1beta1: PodGroup."""

import msgspec

from dynamo_operator.kube.kind import Kind
from dynamo_operator.kube.types.meta import Condition, Resource, Struct


class PodGroupStatus(Struct):
    """What Volcano says about placing the group."""

    conditions: tuple[Condition, ...] = ()


class PodGroup(Resource):
    """Pods that are placed together or not at all."""

    KIND = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodGroupStatus = PodGroupStatus()
