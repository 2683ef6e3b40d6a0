"""A user with kubectl: writes YAML, reads what kubectl prints, and waits for what a document promises."""

import json
from dataclasses import dataclass
from textwrap import dedent, indent

import pytest
import yaml

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.world import DEPLOYMENT, EVENTS, GRAPH, World
from devcluster.components import KubectlError
from kube_runtime.types.meta import Kind, Object


def graph_manifest(spec: str, name: str = "chat") -> str:
    head = f"apiVersion: {GRAPH.api_version}\nkind: {GRAPH.name}\nmetadata: {{name: {name}}}\nspec:"
    return head + indent(dedent(spec), "  ")


def only_a_frontend(image: str) -> str:
    """The manifest of the smallest graph."""
    return graph_manifest(f"""
        services:
          Frontend:
            componentType: frontend
            extraPodSpec: {{mainContainer: {{image: "{image}"}}}}
        """)


def main(pod: Object) -> Object:
    """The main container of a pod's spec."""
    found: Object = next(each for each in pod["containers"] if each["name"] == "main")
    return found


@dataclass(frozen=True, slots=True)
class User:
    """A user who works in one namespace."""

    cluster: ControlPlane
    world: World

    @property
    def namespace(self) -> str:
        return self.world.namespace

    def kubectl(self, *args: str, input: str | None = None) -> str:  # noqa: A002 - as subprocess has it
        """What kubectl prints in the namespace."""
        return self.cluster.kubectl(*args, f"--namespace={self.namespace}", input=input)

    def apply(self, text: str, *flags: str) -> str:
        return self.kubectl("apply", *flags, "--filename=-", input=dedent(text))

    def create(self, body: Object) -> None:
        self.kubectl("create", "--filename=-", input=json.dumps(body))

    def refused(self, *args: str, manifest: str | None = None) -> str:
        """Why kubectl is refused, in one line."""
        words = dedent(manifest) if manifest is not None else None
        arguments = args or ("apply", "--filename=-")
        with pytest.raises(KubectlError) as refusal:
            self.kubectl(*arguments, input=words)
        return str(refusal.value)

    def edit(self, what: str, patch: str) -> None:
        """Merge some YAML into an object, such as `dgd/chat`."""
        self.kubectl("patch", what, "--type=merge", f"--patch={patch_of(patch)}")

    def columns(self, *what: str) -> list[tuple[str, ...]]:
        """The words of each line that `kubectl get` prints, but for the age."""
        return [tuple(line.split()) for line in self.kubectl("get", *what).splitlines()]

    def ready(self, name: str) -> Object:
        return self.world.eventually(GRAPH, name, is_ready)

    def pod(self, name: str) -> Object:
        found: Object = self.template(name)["spec"]
        return found

    def template(self, name: str) -> Object:
        """The pod template of a Deployment, once it exists."""
        found: Object = self.world.eventually(DEPLOYMENT, name)["spec"]["template"]
        return found

    def says(self, name: str, text: str) -> Object:
        """The graph, once the message of its `Ready` has that text."""
        return self.world.eventually(GRAPH, name, lambda body: text in condition(body).get("message", ""))

    def hears(self, about: str, reason: str) -> str:
        """The message of the event of that reason about an object, once it is there."""

        def found() -> str:
            return next(
                (
                    str(each["message"])
                    for each in self.world.list(EVENTS)
                    if (about, reason) == (each["involvedObject"]["name"], each["reason"])
                ),
                "",
            )

        message: str = self.world.until(found, what=lambda: self.kubectl("get", "events"))
        return message

    def versions(self, *kinds: Kind) -> dict[str, str]:
        """The resource version of every object of these kinds."""
        return {
            f"{kind} {each['metadata']['name']}": each["metadata"]["resourceVersion"]
            for kind in kinds
            for each in self.world.list(kind)
        }

    def generation(self, kind: Kind, name: str) -> int:
        """How often the spec of an object has changed."""
        found: int = self.world.eventually(kind, name)["metadata"]["generation"]
        return found


def patch_of(text: str) -> str:
    """YAML as the JSON that kubectl takes."""
    return json.dumps(yaml.safe_load(dedent(text)))
