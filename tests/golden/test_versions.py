"""An upgrade of the operator rolls no pods: what it renders does not depend on its version."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CODE = """
import sys, pytest
from dynamo_operator import version
assert "99.0" == version()
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_another_version_of_the_operator_renders_the_same(tmp_path: Path) -> None:
    metadata = tmp_path / "dynamo_operator-99.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: dynamo-operator\nVersion: 99.0\n")
    chosen = [str(HERE), "-p", "no:cacheprovider", "-k", "golden_file or golden_lines"]
    answer = subprocess.run(  # noqa: S603  # our own tests
        [sys.executable, "-c", CODE, "--quiet", *chosen],
        cwd=HERE.parents[1],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == answer.returncode, answer.stdout
    assert " passed" in answer.stdout
