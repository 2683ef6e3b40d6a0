"""The ValidatingWebhookConfiguration that the chart renders, also for an operator beside the cluster."""

from pathlib import Path

import yaml

from kube_runtime.types.kinds import ValidatingWebhookConfiguration
from kube_runtime.types.meta import Object

CHARTS = Path(__file__).parents[1] / "golden/charts"
NAME = "dynamo-platform-dynamo-operator-validating"


def rendered(case: str = "defaults") -> Object:
    """That of a golden file, held byte by byte by `tests/cluster/charts`."""
    text = (CHARTS / case / "objects.yaml").read_text(encoding="utf-8")
    kind = ValidatingWebhookConfiguration.KIND.name
    [found] = [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each and each["kind"] == kind]
    body: Object = found
    return body


def registration(address: str, bundle: str = "") -> Object:
    """The default one, by which the API server calls an address such as `https://127.0.0.1:9443`."""
    body = rendered()
    for each in body["webhooks"]:
        each["clientConfig"] = {"url": f"{address}{each['clientConfig']['service']['path']}"}
        if bundle:
            each["clientConfig"]["caBundle"] = bundle
    return body
