"""Write the manifests of `dynamoctl install --print` from the chart. Builds Helm if need be."""

import tempfile
from pathlib import Path

from devcluster.programs import Helm, helm
from devcluster.progress import Silent
from dynamoctl.installation.manifests import PLACEHOLDER, RELEASE, RENDERED, mode

CHART = Path(__file__).parents[1] / "charts/dynamo-platform"


def rendered(tool: Helm, *, is_restricted: bool) -> str:
    """The chart rendered with its defaults in one mode."""
    value = f"dynamo-operator.namespaceRestriction.enabled={str(is_restricted).lower()}"
    arguments = (f"--namespace={PLACEHOLDER}", f"--set={value}", "--skip-tests")
    return tool("template", RELEASE, CHART, *arguments)


def main() -> None:
    """Write the manifests of both modes."""
    with tempfile.TemporaryDirectory() as home:
        tool = helm(Path(home), progress=Silent())
        for is_restricted in (False, True):
            file = RENDERED / f"{mode(is_restricted=is_restricted)}.yaml"
            file.write_text(rendered(tool, is_restricted=is_restricted), encoding="utf-8")


if __name__ == "__main__":
    main()
