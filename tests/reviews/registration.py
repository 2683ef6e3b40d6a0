"""The ValidatingWebhookConfiguration that the chart renders, also for an operator beside the cluster."""

from pathlib import Path
from typing import Any

import yaml

from kube_runtime.types.meta import Object

CHARTS = Path(__file__).parents[1] / "golden/charts"
NAME = "dynamo-platform-dynamo-operator-validating"


def rendered(case: str = "defaults", name: str = NAME) -> Object:
    """The one of a golden file, which `tests/cluster/charts` holds byte by byte, or another object."""
    text = (CHARTS / case / "objects.yaml").read_text(encoding="utf-8")
    objects = filter(None, yaml.load_all(text, Loader=yaml.CSafeLoader))
    [body] = [each for each in objects if each["metadata"]["name"] == name]
    return dict[str, Any](body)


def registration(address: str, bundle: str = "") -> Object:
    """The default one, by which the API server calls an address such as `https://127.0.0.1:9443`."""
    body = rendered()
    for each in body["webhooks"]:
        each["clientConfig"] = {"url": f"{address}{each['clientConfig']['service']['path']}"}
        if bundle:
            each["clientConfig"]["caBundle"] = bundle
    return body
