"""One local control plane: create, repair, use and remove it.

The starter, a process or the machine may have crashed at any moment. So all state is in files, and `up`
starts every process that does not run and recreates an incomplete instance. A lock per instance serializes
commands.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import msgspec

from devcluster import DEFAULT_NAME, optional_crds
from devcluster.certificates import Authority, Pair, write_private
from devcluster.components import kubeconfig, server_version
from devcluster.layout import Layout, Plan, free_ports, held, state_folder
from devcluster.processes import Process
from devcluster.progress import SILENT, ProgressReporter
from devcluster.startup import COMPANION, Startup, node_name, process
from kube_runtime.errors import ConfigError, Unreachable
from kube_runtime.types.meta import from_json

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Status:
    """The current status of an instance."""

    server: str
    version: str | None
    """None if the API server does not respond."""
    pids: dict[str, int | None]
    """None for a process that does not run."""

    @property
    def is_alive(self) -> bool:
        """Whether any process runs."""
        return any(self.pids.values())

    @property
    def is_whole(self) -> bool:
        """Whether every process runs and the API server responds."""
        return self.version is not None and None not in self.pids.values()


class Instance:
    """A local control plane with a name. The constructor starts nothing."""

    startup: ClassVar[type[Startup]] = Startup
    """How its processes start and stop."""
    default_nodes: ClassVar[int] = 4

    def __init__(self, name: str = DEFAULT_NAME, root: Path | None = None) -> None:
        if not _NAME.fullmatch(name):
            raise ConfigError(name, "invalid instance name (expected at most 40 of a-z, 0-9 and -)")
        self.name = name
        self._root = (root or state_folder()).absolute()
        self._layout = Layout(self._root / name)

    @classmethod
    def all(cls, root: Path | None = None) -> list[Self]:
        """The instances that have a folder, by name."""
        root = root or state_folder()
        folders = sorted(root.iterdir()) if root.is_dir() else []
        return [cls(f.name, root) for f in folders if f.is_dir() and _NAME.fullmatch(f.name)]

    @property
    def exists(self) -> bool:
        """Whether it was created and not removed."""
        return self._layout.plan.exists()

    @property
    def folder(self) -> Path:
        """Its files."""
        return self._layout.folder

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._plan().server

    @property
    def ports(self) -> frozenset[int]:
        """Its ports, whether or not it runs."""
        return self._plan().ports

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""
        self._plan()
        return self._layout.kubeconfigs / "admin.yaml"

    @property
    def pki(self) -> Path:
        """The folder with `ca.crt`, `admin.crt` and `admin.key`."""
        return self._layout.pki

    @property
    def audit_log(self) -> Path:
        """Every request to the API server, one JSON object per line."""
        return self._layout.audit_log

    def up(
        self,
        *,
        nodes: int | None = None,
        crds: Sequence[str] = (),
        crd_files: Sequence[Path] = (),
        progress: ProgressReporter = SILENT,
    ) -> None:
        """Start the processes that do not run, and return when pods can be scheduled.

        `crds` are names of `optional_crds.NAMES`. They and `crd_files` are installed before the controllers
        start, so that the garbage collector has their kinds from the start. `nodes` None keeps their number;
        a new instance has `default_nodes`.

        Raises: ConfigError, ProcessError, KubectlError.
        """
        self.startup.find_programs(progress)  # a build takes minutes; other commands need not wait
        files = [*optional_crds.files(crds, progress), *crd_files]
        with self._held(progress):
            is_new = not self.exists
            before = self._create() if is_new else self._plan()
            plan = before if nodes is None else msgspec.structs.replace(before, nodes=nodes)
            startup = self.startup(self._layout, plan, progress)
            try:
                startup.start(self.name, files)
                for surplus in range(plan.nodes, before.nodes if not is_new else 0):
                    startup.kubectl("delete", "--ignore-not-found", "node", node_name(surplus))
                self._write(plan)
            except BaseException:
                if is_new:  # keep only the logs; the next attempt starts from scratch
                    self.startup.stop_all(self._layout)
                    self._layout.plan.unlink()
                raise

    def down(self, *, progress: ProgressReporter = SILENT) -> None:
        """Stop everything and remove the folder, if it exists. Raises: ProcessError."""
        if self._layout.folder.exists():
            with self._held(progress):
                progress.step(f"stopping {self.name}")
                self._remove()

    def status(self) -> Status:
        """The current status. Raises: ConfigError if the instance does not exist."""
        plan = self._plan()
        return Status(
            server=plan.server,
            version=server_version(plan.server_port, self.pki / "ca.crt"),
            pids={name: process(self._layout, name).pid() for name in self.startup.names()},
        )

    def kubectl(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """Run kubectl as administrator and return what it prints. Raises: KubectlError."""
        return self.startup(self._layout, self._plan(), SILENT).kubectl(*arguments, stdin=stdin)

    def install_crds(
        self, names: Sequence[str] = (), files: Sequence[Path] = (), *, progress: ProgressReporter = SILENT
    ) -> None:
        """Install CRDs of other projects by name, or any CRDs from files.

        Restarts the controller manager, whose garbage collector discovers new kinds only every 30 seconds.

        Raises: ConfigError, Unreachable, KubectlError.
        """
        crd_files = [*optional_crds.files(names, progress), *files]
        if self.status().version is None:
            raise Unreachable(f"{self.name}: no answer from {self.server}; is it up?")
        with self._held(progress):
            startup = self.startup(self._layout, self._plan(), progress)
            startup.install_crds(crd_files)
            startup.restart_controller_manager()

    @property
    def companion(self) -> Process:
        """The operator under test, which `down` stops with the rest."""
        return process(self._layout, COMPANION)

    def run_companion(
        self,
        command: Sequence[str | Path],
        variables: Mapping[str, str],
        *,
        progress: ProgressReporter = SILENT,
    ) -> None:
        """Start the operator under test unless it runs, with `variables` added to our environment.

        Raises: ConfigError if the instance does not exist.
        """
        with self._held(progress):
            self._plan()
            if self.companion.pid() is None:
                self.companion.start(command, {**os.environ, **variables})

    def token_for(self, namespace: str, account: str, *, duration: str = "1h") -> str:
        """A token of a ServiceAccount, from the TokenRequest API."""
        return self.kubectl(
            "create", "token", account, f"--namespace={namespace}", f"--duration={duration}"
        ).strip()

    def service_account_kubeconfig(self, namespace: str, account: str, *, duration: str = "1h") -> Path:
        """Write a kubeconfig file of a ServiceAccount, valid for `duration`."""
        token = self.token_for(namespace, account, duration=duration)
        return self._write_kubeconfig(f"{namespace}.{account}", token)

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig file with a client certificate for this user."""
        authority = Authority(Pair.read(self.pki, "ca"))
        return self._write_kubeconfig(f"user.{user}", authority.issue(user, groups=groups))

    def _write_kubeconfig(self, name: str, credential: Pair | str) -> Path:
        path = self._layout.kubeconfigs / f"{name}.yaml"
        content = kubeconfig(
            name=f"dynamo-{self.name}",
            server=self.server,
            authority=(self.pki / "ca.crt").read_bytes(),
            credential=credential,
        )
        write_private(path, content)
        return path

    def installing(self, progress: ProgressReporter) -> AbstractContextManager[None]:
        """Lock out other commands that install an operator, which would choose different ports."""
        return self._held(progress, ".operator")

    def _held(self, progress: ProgressReporter, part: str = "") -> AbstractContextManager[None]:
        lock = self._root / ".locks" / f"{self.name}{part}"
        return held(lock, progress, f"another command on {self.name}")

    def _plan(self) -> Plan:
        try:
            return from_json(self._layout.plan.read_bytes(), Plan)
        except FileNotFoundError:
            advice = f"there is no such instance; make it with: dynamoctl dev up {self.name}"
            raise ConfigError(self.name, advice) from None
        except msgspec.DecodeError as error:
            advice = f"{error}; remove it with: dynamoctl dev down {self.name}"
            raise ConfigError(str(self._layout.plan), advice) from error

    def _create(self) -> Plan:
        self._remove()
        others = (instance for instance in type(self).all(self._root) if instance.exists)
        reserved = {port for instance in others for port in instance.ports}
        server_port, etcd_port, etcd_peer_port = free_ports(3, reserved=reserved)
        plan = Plan(
            server_port=server_port,
            etcd_port=etcd_port,
            etcd_peer_port=etcd_peer_port,
            nodes=self.default_nodes,
        )
        self._layout.create()
        self.startup.write_credentials(self._layout, plan, self.name)
        self._write(plan)
        return plan

    def _write(self, plan: Plan) -> None:
        partial = self._layout.plan.with_suffix(".partial")
        write_private(partial, msgspec.json.encode(plan))
        partial.rename(self._layout.plan)

    def _remove(self) -> None:
        self.startup.stop_all(self._layout)
        shutil.rmtree(self._layout.folder, ignore_errors=True)
