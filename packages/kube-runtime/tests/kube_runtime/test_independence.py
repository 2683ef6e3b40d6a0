"""The runtime knows no product: what users see of one is given to it."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
PRODUCT = re.compile(r"dynamo|nvidia|grove|lora(?!m)", re.IGNORECASE)


def test_no_file_of_the_package_names_a_product() -> None:
    files = [
        PACKAGE / "README.md",
        PACKAGE / "pyproject.toml",
        *PACKAGE.glob("src/**/*.py"),
        *PACKAGE.glob("examples/**/*.py"),
    ]
    assert len(files) > 35
    assert [] == [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PRODUCT.search(line)
    ]
