"""Keep workers running that were started before terminating workers drained.

A drain period (`render/components/worker.py`) is part of the pod template, so giving one to workers that run
would restart them. They get it when their template changes for another reason. Whether it does shows from
what would be rendered without drain periods: that also has the `preStop` of users, so no edit of theirs is
held back.
"""

from dynamo_graphs.plan.implied_requests import with_live_requests
from dynamo_graphs.plan.templates import WORKLOADS, are_same, units, with_units
from kube_runtime.kind import Object

_PRE_STOP = b'"preStop"'


def starts_to_drain(wanted: Object, live: bytes) -> bool:
    """Whether a workload has more pods that drain than its live spec, in JSON.

    Cheap, since it is asked at every reconcile: it counts names and decodes nothing.
    """
    if wanted["kind"] not in WORKLOADS:
        return False
    draining = sum(
        bool((container.get("lifecycle") or {}).get("preStop"))
        for unit in units(wanted).values()
        for template in unit.values()
        if isinstance(template, dict)
        for container in template["spec"]["containers"]
    )
    return draining > live.count(_PRE_STOP)


def without_new_drain(wanted: Object, undrained: Object, live: Object) -> Object:
    """The workload to apply: `wanted`, without the drain where nothing else would change.

    `undrained` is the same workload, rendered without drain periods.
    """
    theirs = units(live)
    earlier = units(with_live_requests(undrained, live))
    kept = {
        name: unit
        for name, unit in earlier.items()
        if name in theirs and are_same(wanted["kind"], unit, theirs[name])
    }
    return with_units(wanted, kept) if kept else wanted
