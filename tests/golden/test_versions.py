"""An upgrade of the operator rolls no pods: what it renders does not depend on its version."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CODE = """
import sys, pytest, dynamo_operator
dynamo_operator._VERSION = "99.0"
assert "dynamo-operator/99.0" == dynamo_operator.user_agent()
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_another_version_of_the_operator_renders_the_same() -> None:
    chosen = [str(HERE), "-p", "no:cacheprovider", "-k", "golden_file or golden_lines"]
    answer = subprocess.run(  # noqa: S603  # our own tests
        [sys.executable, "-c", CODE, "--quiet", *chosen],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == answer.returncode, answer.stdout
    assert " passed" in answer.stdout
