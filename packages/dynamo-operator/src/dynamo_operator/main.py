"""`dynamo-operator`, the program that runs in the cluster."""

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App


def app() -> "App":
    """The commands. The default is `run`: the reference operator is started with flags only."""
    _import_structlog()
    from importlib.metadata import entry_points

    from dynamo_operator import version
    from dynamo_operator.process.main import run
    from kube_runtime.commandline import application

    manager = application("dynamo-operator", version=version)
    manager.default(run)
    manager.command(run, name="run")
    manager.command(
        "dynamo_operator.requests.copier:copy_output",  # a string: only the containers that run it import it
        name="copy-output",
        help="Save a profiler's output as a ConfigMap. Profiling Jobs run this.",
    )
    for command in entry_points(group="dynamo_operator.commands"):
        package = command.dist.name if command.dist else "another package"
        manager.command(command.value, name=command.name, help=f"Of {package}: see `{command.name} --help`.")
    return manager


def main() -> None:
    """The entry point."""
    gc.disable()  # imports leave no garbage, and collections take an eighth of their CPU time
    manager = app()
    from dynamo_operator.process import flags
    from kube_runtime.commandline import execute

    gc.freeze()  # later collections skip code and types
    gc.enable()
    execute(manager, flags.canonical(sys.argv[1:]))


# structlog imports rich, which cyclopts installs for help texts, for tracebacks that the operator
# does not print. That takes a sixth of the CPU time of all imports.
def _import_structlog() -> None:
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # as documented, `import rich` fails now
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
