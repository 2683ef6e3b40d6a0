"""The images of a component's containers: placeholders, and tags that may change.

Rules of admission and of `dynamoctl lint`. The controllers do not apply them: a pod with such an image fails
alone, and its reason names the image.
"""

import re
from collections.abc import Iterator

from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.shape import POD, shape_problems
from dynamo_graphs.validation.syntax import shown
from dynamo_graphs.validation.volumes import containers_of

_PLACEHOLDER = re.compile(r"<[^<>]*>|\$?\{\{?[^{}]*\}|\$\(?\w+")
"""`<your-registry>`, `${IMAGE}`, `{{ .Values.image }}`, `$IMAGE`. No image reference has such characters."""


def image_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Report images that are placeholders."""
    pod, place = spec.extra_pod_spec or {}, f"{path}.extraPodSpec"
    if any(shape_problems(pod, POD, place)):
        return  # reported by the rules of the component
    for at, container in containers_of(pod, place):
        yield from placeholder_problems(container.get("image"), f"{at}.image")


def placeholder_problems(image: object, path: str) -> Iterator[Problem]:
    """Report a text in place of an image that contains a placeholder."""
    if isinstance(image, str) and (match := _PLACEHOLDER.search(image)):
        message = f"{shown(image)} is not an image reference: {shown(match[0])} is a placeholder"
        yield Problem(path, message)


def image_warnings(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Warn of images whose content may change."""
    for at, container in containers_of(spec.extra_pod_spec or {}, f"{path}.extraPodSpec"):
        image = container.get("image")
        if not isinstance(image, str) or not image or "@" in image:
            continue
        _, colon, tag = image.rpartition("/")[2].partition(":")
        if not colon:
            message = (
                f'image "{image}" has no tag, so latest is used: pods may run different versions'
            )
            yield Problem(f"{at}.image", message)
        elif tag == "latest":
            message = f'image "{image}" may change at any time: pods may run different versions'
            yield Problem(f"{at}.image", message)
