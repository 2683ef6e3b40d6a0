from pathlib import Path

import pytest

from devcluster.layout import cache_folder, state_folder


def test_folders_follow_the_xdg_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere/state")
    assert Path("/somewhere/cache/dynamo-operator/controlplane") == cache_folder()
    assert Path("/somewhere/state/dynamo-operator/controlplane") == state_folder()


@pytest.mark.parametrize("unset", ["", "relative/path"])
def test_an_empty_or_relative_variable_counts_as_unset(
    monkeypatch: pytest.MonkeyPatch, unset: str
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", unset)
    monkeypatch.setenv("XDG_STATE_HOME", unset)
    assert Path("/home/somebody/.cache/dynamo-operator/controlplane") == cache_folder()
    assert Path("/home/somebody/.local/state/dynamo-operator/controlplane") == state_folder()
