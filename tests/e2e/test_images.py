"""Images that are built here run on the node, and are the same each time."""

from pathlib import Path

import pytest

from cluster.world import PODS, World
from devcluster.progress import Silent
from e2e.cluster import RealCluster
from kube_runtime.errors import ConfigError
from kube_runtime.types.meta import Object
from realnode.build import ImageBuild

NAME = "localhost/greeter:1"
CONTAINERFILE = """\
ARG BASE=nothing
FROM ${BASE} AS build
ARG GREETING=hello
ENV PLACE=/opt/greeter
WORKDIR /source
COPY words.txt .
RUN mkdir -p $PLACE && python3 -c "print('$GREETING', open('words.txt').read())" >$PLACE/text
FROM ${BASE}
COPY --from=build /opt/greeter /opt/greeter
ENV PATH=/opt/greeter:$PATH
USER 65532:65532
ENTRYPOINT ["/bin/cat", "/opt/greeter/text"]
"""
pytestmark = pytest.mark.cluster


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder that says what is in an image."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "Containerfile").write_text(CONTAINERFILE)
    (folder / "words.txt").write_text("world")
    return folder


def test_an_image_runs_and_comes_out_the_same_again(
    cluster: RealCluster, world: World, source: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.tar", tmp_path / "second.tar"
    [one, again] = [ImageBuild(source, NAME).write(file, Silent()) for file in (first, second)]
    assert one == again
    assert first.read_bytes() == second.read_bytes()
    cluster.instance.load_image(first)
    container = {"name": "main", "image": NAME, "imagePullPolicy": "Never"}
    world.create(
        PODS,
        {
            "metadata": {"name": "greeter"},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        },
    )
    world.eventually(PODS, "greeter", _has_succeeded)
    said = cluster.kubectl("logs", "greeter", f"--namespace={world.namespace}")
    assert "hello world" == said.strip()


def test_a_command_that_fails_is_named_with_its_line_and_last_words(source: Path, tmp_path: Path) -> None:
    (source / "Containerfile").write_text(CONTAINERFILE.replace("mkdir -p", "echo no room >&2; false"))
    with pytest.raises(ConfigError, match=r"Containerfile:7: .*no room"):
        ImageBuild(source, NAME).write(tmp_path / "image.tar", Silent())
    assert [source] == list(tmp_path.iterdir())


def _has_succeeded(body: Object) -> bool:
    phase: str = body["status"].get("phase", "")
    return phase == "Succeeded"
