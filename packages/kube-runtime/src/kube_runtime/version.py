"""The version of the installed package."""


def version() -> str:
    """The version, such as `0.1.0`. Read on demand: finding it costs as much as starting Python."""
    from importlib.metadata import version as of_package

    return of_package("dynamo-operator")
