"""What the API server makes of what we apply still contains it, so that a second apply is not due."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cluster.world import World
from dynamo_graphs.offline import graph_tree
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.apply.drift import has_no_drift
from kube_runtime.types.kinds import (
    ConfigMap,
    Deployment,
    Ingress,
    Role,
    RoleBinding,
    Service,
    ServiceAccount,
)
from kube_runtime.types.meta import Object, content, content_of
from kube_runtime.wire import decode, path_of

TYPES = {
    each.KIND.name: each
    for each in (
        *(ConfigMap, Deployment, DynamoComponentDeployment, Ingress),
        *(Role, RoleBinding, Service, ServiceAccount),
    )
}
CASES = sorted(
    each
    for each in Path(__file__).parents[2].joinpath("golden/cases").glob("*/objects.yaml")
    if each.parent.name != "main-container-overrides"  # has fields that no API server knows
)

# Each thing that the API server completes, shortens or leaves out, as a user may write it.
RICH = """
metadata: {name: rich}
spec:
  envs: [{name: E0, value: ""}]
  services:
    Worker:
      componentType: worker
      replicas: 0
      scalingAdapter: {}
      sharedMemory: {size: 0.5Gi}
      resources:
        requests: {cpu: "0.50", memory: 1024Mi, gpu: "1", custom: {ephemeral-storage: 1.5G}}
        limits: {cpu: 1000m, memory: 1.0Gi, gpu: "1"}
      livenessProbe: {tcpSocket: {port: 9090}, terminationGracePeriodSeconds: 5, periodSeconds: 10}
      readinessProbe: {grpc: {port: 9090}, initialDelaySeconds: 0}
      extraPodMetadata: {labels: {a: ""}, annotations: {b: ""}}
      extraPodSpec:
        terminationGracePeriodSeconds: 0
        hostNetwork: false
        hostAliases: [{ip: 1.2.3.4, hostnames: [a]}]
        dnsConfig: {nameservers: [1.1.1.1], options: [{name: ndots, value: "2"}]}
        tolerations: [{operator: Exists, value: "", effect: ""}, {key: a, effect: NoExecute}]
        topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}
        affinity:
          podAntiAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 1
              podAffinityTerm: {topologyKey: h, labelSelector: {matchLabels: {a: b}}}
        securityContext: {runAsUser: 0, fsGroup: 0, seccompProfile: {type: RuntimeDefault}}
        serviceAccount: legacy
        volumes:
        - {name: map, configMap: {name: c, items: [{key: a, path: b}]}}
        - name: claim
          ephemeral:
            volumeClaimTemplate:
              spec:
                storageClassName: ""
                accessModes: [ReadWriteOnce]
                resources: {requests: {storage: 0.5Gi}}
        - {name: empty, emptyDir: {}}
        - {name: host, hostPath: {path: /x}}
        - name: mixed
          projected:
            sources:
            - serviceAccountToken: {path: t}
            - downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}
        initContainers:
        - name: first
          image: x
          restartPolicy: Always
          env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "0"}}}]
        containers:
        - {name: side, image: x, resources: {limits: {cpu: "0.1"}}, env: [{name: B, value: ""}]}
        mainContainer:
          image: i
          command: []
          stdin: false
          workingDir: ""
          lifecycle: {preStop: {exec: {command: [sleep, "1"]}}}
          envFrom: [{prefix: "", configMapRef: {name: c}}]
          ports:
          - {name: system, containerPort: 9090}
          - {name: udp, containerPort: 9090, protocol: UDP}
          - {name: x, containerPort: 9091, hostPort: 0}
          env:
          - {name: Q, valueFrom: {resourceFieldRef: {resource: limits.memory}}}
          - {name: F, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
          - {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}
          startupProbe:
            httpGet: {path: /, port: 1, httpHeaders: [{name: a, value: ""}]}
          volumeMounts: [{name: map, mountPath: /map, readOnly: false, subPath: ""}]
          securityContext: {capabilities: {add: [SYS_PTRACE]}, privileged: false}
    Frontend:
      componentType: frontend
      ingress: {enabled: true, host: h, ingressControllerClassName: nginx, tls: {}}
      extraPodSpec: {mainContainer: {image: i}}
"""

pytestmark = pytest.mark.cluster


def applied(world: World, wanted: Object) -> Any:
    type_ = TYPES[wanted["kind"]]
    path = path_of(type_.KIND, world.namespace, wanted["metadata"]["name"])
    query = "?dryRun=All&fieldManager=dynamo-operator&force=true"
    answer = world._request("PATCH", path + query, wanted, "application/apply-patch+yaml")
    return decode(type_, msgspec.json.encode(answer))


def in_namespace(namespace: str, wanted: Object) -> Object:
    return {**wanted, "metadata": {**wanted["metadata"], "namespace": namespace}}


def not_contained(world: World, objects: Iterable[Object]) -> list[tuple[Object, Object]]:
    """What is wanted and what is stored, where the one is not in the other."""
    wanted = [in_namespace(world.namespace, each) for each in objects if each["kind"] in TYPES]
    both = [(content(each), content_of(applied(world, each))) for each in wanted]
    return [(ours, live) for ours, live in both if not has_no_drift(ours, live)]


def test_what_is_rendered_is_stored(world: World) -> None:
    texts = (case.read_text("utf-8") for case in CASES)
    assert [] == not_contained(world, chain.from_iterable(map(yaml.safe_load_all, texts)))


def test_what_users_write_is_stored(world: World) -> None:
    body = in_namespace(world.namespace, yaml.safe_load(RICH))
    graph = msgspec.convert(body, DynamoGraphDeployment)
    assert [] == not_contained(world, graph_tree(graph, Facts(), RenderSettings()))
