"""The settings of the operator that runs in a cluster, from the flags of its Deployment."""

import msgspec

from dynamo_operator.cli.configuration import read_settings
from dynamo_operator.cli.flags import canonical
from dynamo_operator.installation.reading import Reading
from dynamo_operator.kube.errors import ConfigError
from dynamo_operator.kube.types.apps import Deployment
from dynamo_operator.kube.types.meta import Struct
from dynamo_operator.settings import RenderSettings

_SELECTOR = "control-plane=controller-manager,app.kubernetes.io/part-of=dynamo-operator"


class _Container(Struct):
    args: tuple[str, ...] = ()


class _PodSpec(Struct):
    containers: tuple[_Container, ...] = ()


class _Template(Struct):
    spec: _PodSpec = _PodSpec()


class _Spec(Struct):
    template: _Template = _Template()


async def rendering_settings(reading: Reading) -> RenderSettings:
    """How the running operator renders.

    Raises: ConfigError unless there is just one; ApiError; ExceptionGroup of ConfigError for its flags.
    """
    found = await reading.all(Deployment, labels=_SELECTOR)
    if len(found) != 1:
        names = ", ".join(str(each.key) for each in found) or "none"
        raise ConfigError("--before-upgrade", f"needs one operator that runs; there is {names}")
    spec = msgspec.json.decode(found[0].spec, type=_Spec)
    arguments = [flag for each in spec.template.spec.containers for flag in each.args]
    words = (each.removeprefix("--").partition("=") for each in canonical(arguments))
    given = {name: value or "true" for name, _, value in words}
    return read_settings(given, environment={}).render
