"""A path of the API server is made in one module, from segments that it quotes."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "packages/kube-runtime/src/kube_runtime/wire.py"


def test_only_one_module_makes_paths() -> None:
    # The type checkers refuse any other text where a `UrlPath` is expected.
    makers = {
        path
        for path in sorted(ROOT.glob("packages/*/src/**/*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "UrlPath"
    }
    assert {MODULE} == makers
