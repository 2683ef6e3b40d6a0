"""DynamoGraphDeployments from manifest to objects and status, as pure functions.

`from dynamo_graphs import Graph` is the library for Python users.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dynamo_graphs.library.exports import *  # noqa: F403


def __getattr__(name: str) -> object:
    from dynamo_graphs.library import exports

    return getattr(exports, name)


def __dir__() -> list[str]:
    from dynamo_graphs.library.exports import __all__

    return sorted({*globals(), *__all__})
