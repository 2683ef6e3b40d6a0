"""CRDs of other projects, which the operator uses if they are installed.

They come from the pinned Go modules of their projects, verified with Go's checksums. For a project without a
CRD in its module, `manifests/crds` has a minimal one: it keeps unknown fields and has the right names, scope
and subresources.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from devcluster.certificates import write_private
from devcluster.components import MANIFESTS
from devcluster.layout import cache_folder, held
from devcluster.processes import completed
from devcluster.programs import Go, find_go
from devcluster.progress import ProgressReporter
from kube_runtime.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Source:
    """A CRD in a file of a Go module."""

    module: str
    version: str
    sum: str
    path: str
    definition: str


MODULES: Mapping[str, Source] = {
    "lws": Source(
        module="sigs.k8s.io/lws",
        version="v0.7.0",
        sum="h1:qWfzX8+UBak+Hq0+m/PuE3uO0mp/3dmm5q/h/7z31A8=",
        path="config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
        definition="leaderworkersets.leaderworkerset.x-k8s.io",
    ),
    "inferencepool": Source(
        module="sigs.k8s.io/gateway-api-inference-extension",
        version="v1.2.0",
        sum="h1:7H+ijrUImnW2ubcTakNgV723xDIdQx1Umv4vDVB+tTk=",
        path="config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",
        definition="inferencepools.inference.networking.k8s.io",
    ),
    "istio": Source(
        module="istio.io/api",
        version="v1.28.0",
        sum="h1:0fYY9G03CAdFwE/fCkpr0v7kKsy+Hz9OCCjLNBNLbnU=",
        path="kubernetes/customresourcedefinitions.gen.yaml",
        definition="virtualservices.networking.istio.io",
    ),
}
_MINIMAL = ("grove", "kai", "podgroup")
NAMES = (*sorted((*MODULES, *_MINIMAL)),)
"""The names of all CRDs."""


def files(names: Sequence[str], progress: ProgressReporter) -> list[Path]:
    """The files of these CRDs, downloaded into the user's cache if need be.

    Raises: ConfigError for an unknown name, a failed download or a wrong checksum.
    """
    for name in names:
        if name not in NAMES:
            raise ConfigError(name, f"is none of {', '.join(NAMES)}")
    return [_file(name, progress) for name in dict.fromkeys(names)]


def _file(name: str, progress: ProgressReporter) -> Path:
    source = MODULES.get(name)
    if source is None:
        return MANIFESTS / "crds" / f"{name}.yaml"
    path = cache_folder() / "crds" / f"{name}-{source.version}.yaml"
    with held(path.with_suffix(".lock"), progress, f"another process that downloads {name}"):
        if not path.exists():
            go = find_go(progress)
            progress.step(f"downloading {source.module} {source.version}")
            partial = path.with_suffix(".partial")
            write_private(partial, _definition(source, _download(go, source)))
            partial.rename(path)
    return path


def _definition(source: Source, module: Path) -> bytes:
    documents = yaml.load_all((module / source.path).read_text(), Loader=yaml.CSafeLoader)
    for document in documents:
        if document and document["metadata"]["name"] == source.definition:
            return yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False).encode()
    raise ConfigError(f"{source.module}@{source.version}", f"has no {source.definition}")


def _download(go: Go, source: Source) -> Path:
    module = f"{source.module}@{source.version}"
    command = (str(go.program), "mod", "download", "-json", module)
    answer = completed(command, go.environment(), folder=cache_folder())
    download = json.loads(answer.stdout) if answer.stdout.strip() else {}
    if answer.returncode or "Error" in download:
        cause = " ".join(str(download.get("Error") or answer.stderr).split())
        raise ConfigError(module, f"cannot be downloaded: {cause}")
    if download["Sum"] != source.sum:
        raise ConfigError(module, f"has the sum {download['Sum']}, expected {source.sum}")
    return Path(download["Dir"])
