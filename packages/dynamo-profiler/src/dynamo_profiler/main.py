"""`dynamo-profiler`, the program of profiling Jobs, which is also `dynamoctl profiler`."""

import sys
from typing import Annotated

from cyclopts import App, Parameter

from kube_runtime.commandline import application, execute
from kube_runtime.errors import ConfigError


def profiler(
    *,
    profile_config: Annotated[str, Parameter(metavar="TEXT", allow_leading_hyphen=True)] = "",
    enable_gpu_discovery: bool = False,
    config: Annotated[str, Parameter(metavar="TEXT", allow_leading_hyphen=True)] = "",
    output_dir: Annotated[str, Parameter(metavar="FOLDER")] = "/data",
) -> None:
    """Find a graph for a model and its latency targets.

    It predicts, without a GPU, unless the configuration asks it to measure. It
    replaces Dynamo's profiler in the Job of a DynamoGraphDeploymentRequest and
    writes the same files into `output_dir`. Exits with 1 if no graph meets the
    targets.

    Parameters
    ----------
    profile_config
        Configuration as YAML or JSON; docs/profiler.md lists its keys.
    enable_gpu_discovery
        Use the GPUs of the cluster's nodes instead of those in the configuration.
    config
        Spec of a request in v1beta1 as JSON, in place of a configuration.
    output_dir
        Folder of the results of such a request.
    """
    from dynamo_profiler import command

    if bool(config) == bool(profile_config):
        raise ConfigError("--config", "expected either --config or --profile-config")
    if config:
        command.run(config, request_folder=output_dir)
    else:
        command.run(profile_config, discovers=enable_gpu_discovery)


def app() -> App:
    """The program with its one command."""
    program = application("dynamo-profiler")
    program.default(profiler)
    return program


def main() -> None:
    """Run the program."""
    execute(app(), sys.argv[1:])
