"""Plays the kubelet for a profiling pod, honestly: the rendered commands run as processes, nothing else does.

Volumes are folders, and as nothing can be mounted, their paths take the place of the mount paths
wherever those occur in command, arguments and environment. The ServiceAccount token is a real one, so that
what the API server lets the pod do is what it lets the processes do. The pod itself asks for a resource
that no node has, or the local control plane would end it at once.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from cluster.conftest import ControlPlane
from cluster.requests.playing import tell, terminated
from cluster.world import CONFIG_MAP, PATIENCE_SECONDS, PODS, World
from dynamo_operator.requests.api import PROFILER
from kube_runtime.types.meta import Kind, Object

BY_HAND = {"requests": {"tests.example/kubelet": "1"}, "limits": {"tests.example/kubelet": "1"}}
IMAGE = Path(__file__).parents[3] / "packages/dynamo-profiler/src/dynamo_profiler/image"
"""The working directory of the image."""

_SECRET = Kind("", "v1", "Secret", "secrets")
_TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
_DISRUPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "TerminationByKubelet",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_SIGNALLED = 128
"""And the number of the signal: the exit code of a container that was killed."""
_LAST_WORDS = 2048  # of a log, as the kubelet takes them for a termination message


@dataclass(frozen=True, slots=True)
class Kubelet:
    """Runs the pods of one namespace; `folder` holds their volumes, `image` what their images set."""

    control_plane: ControlPlane
    world: World
    folder: Path
    image: Mapping[str, str] = field(default_factory=dict)

    def runs(
        self, job: str, *, kill_in: str = "", evict_when: Callable[[], bool] | None = None
    ) -> dict[str, int]:
        """Run the job's pod to its end, report its status, and return the exit code of each container.

        `kill_in` is what the profiler has logged when it is killed; empty means: it is not. `evict_when`
        returns whether the node loses the pod now, and with it all of its processes.
        """
        pod = self.world.until(lambda: self._pod_of(job), what=lambda: f"no pod of Job {job}")
        name, spec = pod["metadata"]["name"], pod["spec"]
        volumes = {each["name"]: self._volume(each, spec) for each in spec["volumes"]}
        states: dict[str, Object] = {each["name"]: {"running": {}} for each in spec["containers"]}
        tell(self.world, name, "Running", states)
        running = {each["name"]: self._start(each, volumes, name) for each in spec["containers"]}
        codes: dict[str, int] = {}
        try:
            if kill_in:
                self.world.until(lambda: kill_in in self.log(PROFILER))
                running[PROFILER].kill()
            if evict_when is not None:
                self.world.until(evict_when, what=lambda: self.log(PROFILER))
                for process in running.values():
                    process.kill()
                ends = dict.fromkeys(states, terminated(_SIGNALLED + signal.SIGKILL))
                tell(self.world, name, "Failed", ends, reason="Evicted", conditions=[_DISRUPTED])
                return {each: running[each].wait() for each in running}
            # In the order in which they end: the second waits for the first.
            for each in spec["containers"]:
                code = running[each["name"]].wait(PATIENCE_SECONDS)
                code = codes[each["name"]] = code if code >= 0 else _SIGNALLED - code
                log = self._log(each["name"]).read_text(encoding="utf-8")
                words = self._termination_log(each["name"])
                said = words.read_text(encoding="utf-8") if words.exists() else ""
                if code and not said:
                    said = log[-_LAST_WORDS:]
                states[each["name"]] = terminated(code, said)
                phase = "Running"
                if len(codes) == len(states):
                    phase = "Failed" if any(codes.values()) else "Succeeded"
                tell(self.world, name, phase, states)
        finally:
            for process in running.values():
                process.kill()
        return codes

    def file(self, name: str) -> Path:
        return self.folder / "profiling-output" / name

    def log(self, container: str) -> str:
        return self._log(container).read_text(encoding="utf-8")

    def _pod_of(self, job: str) -> Object | None:
        owned = (
            each
            for each in self.world.list(PODS)
            if each["metadata"].get("labels", {}).get("job-name") == job
            and each["status"].get("phase") not in ("Succeeded", "Failed")
        )
        return next(owned, None)

    def _volume(self, volume: Object, spec: Object) -> Path:
        folder = self.folder / str(volume["name"])
        folder.mkdir()
        match volume:
            case {"emptyDir": _} | {"persistentVolumeClaim": _}:
                pass
            case {"configMap": config_map}:
                self._write(config_map, folder)
            case {"projected": {"sources": sources}}:
                for source in sources:
                    self._project(source, folder, spec["serviceAccountName"])
            case _:
                raise AssertionError(f"no such volume here: {volume}")
        return folder

    def _project(self, source: Object, folder: Path, account: str) -> None:
        match source:
            case {"serviceAccountToken": {"path": path}}:
                token = self.control_plane.instance.token_for(self.world.namespace, account)
                (folder / path).write_text(token, encoding="utf-8")
            case {"configMap": config_map}:
                self._write(config_map, folder)
            case {"downwardAPI": {"items": [{"path": path}]}}:
                (folder / path).write_text(self.world.namespace, encoding="utf-8")
            case _:
                raise AssertionError(f"no such source here: {source}")

    def _write(self, config_map: Object, folder: Path) -> None:
        data: dict[str, str] = self.world.eventually(CONFIG_MAP, config_map["name"])["data"]
        for item in config_map["items"]:
            (folder / item["path"]).write_text(data[item["key"]], encoding="utf-8")

    def _start(self, container: Object, volumes: Mapping[str, Path], pod: str) -> subprocess.Popen[bytes]:
        paths = {each["mountPath"]: volumes[each["name"]] for each in container["volumeMounts"]}
        words = [_mapped(each, paths) for each in (*container["command"], *container["args"])]
        environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "HOSTNAME": pod,
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            **self.image,
            # The copier's clock, faster than in a cluster.
            "COPIER_PAUSE_SECONDS": "1",
            "COPIER_TERMINATION_LOG": str(self._termination_log(container["name"])),
            **self._variables(container, paths),
            **self._credentials(paths),
        }
        with self._log(container["name"]).open("wb") as log:
            return subprocess.Popen(  # noqa: S603 - what the operator has rendered
                words, cwd=IMAGE, env=environment, stdout=log, stderr=log
            )

    def _variables(self, container: Object, paths: Mapping[str, Path]) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in container.get("env", ()):
            if "value" in each:
                found[each["name"]] = _mapped(each["value"], paths)
                continue
            reference = each["valueFrom"]["secretKeyRef"]
            assert reference.get("optional"), "the pod would wait for a Secret that is not there"
            assert self.world.get(_SECRET, reference["name"]) is None
        return found

    def _credentials(self, paths: Mapping[str, Path]) -> dict[str, str]:
        """What a pod finds in its token's folder, as a kubeconfig file; nothing if it has no token."""
        token = paths.get(_TOKEN_FOLDER)
        if token is None:
            return {"KUBECONFIG": os.devnull}
        cluster = {"server": self.control_plane.server, "certificate-authority": str(token / "ca.crt")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"tokenFile": str(token / "token")}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        file = self.folder / "kubeconfig.yaml"
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        return {"KUBECONFIG": str(file)}

    def _termination_log(self, container: str) -> Path:
        return self.folder / f"{container}.termination"

    def _log(self, container: str) -> Path:
        return self.folder / f"{container}.log"


def _mapped(text: str, paths: Mapping[str, Path]) -> str:
    for mount, folder in paths.items():
        text = re.sub(rf"(?<![\w./-]){re.escape(mount)}(?![\w-])", str(folder), text)
    return text
