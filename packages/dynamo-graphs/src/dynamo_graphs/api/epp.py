"""Configuration of an endpoint picker, the component behind an InferencePool.

The configuration document belongs to another project and grows. Only fields that every version requires are
declared here; all other fields are kept as they are.
"""

from typing import Annotated

import msgspec

from kube_runtime.crd.declare import Field
from kube_runtime.kind import Object
from kube_runtime.types.meta import Struct


class EppPlugin(Struct):
    """One plugin of the endpoint picker."""

    type: Annotated[str, Field("Type of the plugin, under which the endpoint picker knows it.")]
    name: Annotated[
        str | None, Field("Name that scheduling profiles refer to. Left out, it is the type.")
    ] = None
    parameters: Annotated[
        msgspec.Raw | None, Field("Parameters of the plugin, in its own form.", free_form=True)
    ] = None


class EppPluginReference(Struct):
    """One use of a plugin in a scheduling profile."""

    plugin_ref: Annotated[str, Field("Name of the plugin.")]
    weight: Annotated[
        int | None, Field("Weight of the plugin's score against the others.", format="int64")
    ] = None


class EppSchedulingProfile(Struct):
    """A named selection of plugins."""

    name: Annotated[str, Field("Name of the profile.")]
    plugins: Annotated[
        tuple[EppPluginReference, ...], Field("Plugins that take part, in order.", required=True)
    ] = ()


class EndpointPickerConfig(Struct):
    """An EndpointPickerConfig document of the Gateway API inference extension."""

    plugins: Annotated[
        tuple[EppPlugin, ...], Field("Plugins that are created.", required=True)
    ] = ()
    scheduling_profiles: Annotated[
        tuple[EppSchedulingProfile, ...],
        Field("Profiles by which requests are scheduled.", required=True),
    ] = ()
    api_version: Annotated[
        str | None,
        Field("API version of the document, such as `inference.networking.x-k8s.io/v1alpha1`."),
    ] = None
    kind: Annotated[str | None, Field("Kind of the document, `EndpointPickerConfig`.")] = None


class EppConfig(Struct):
    """Configuration of an endpoint picker: a ConfigMap or the document itself, not both."""

    config_map_ref: Annotated[
        Object | None,
        Field("Key of a ConfigMap that holds the document.", embeds="ConfigMapKeySelector"),
    ] = None
    config: Annotated[
        Object | None,
        Field(
            "The document itself; the operator keeps it in a ConfigMap of its own. Fields that are "
            "not listed here are kept.",
            shape=EndpointPickerConfig,
            free_form=True,
        ),
    ] = None
