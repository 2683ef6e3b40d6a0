from pathlib import Path

import pytest

from devcluster.instance import Instance
from kube_runtime.errors import ConfigError


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "../a", "a/b", ".locks", "a" * 41])
def test_a_name_that_is_not_a_label_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="instance name"):
        Instance(name, tmp_path)


def test_what_was_never_made_or_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="dynamoctl dev up mine"):
        Instance("mine", tmp_path).status()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "instance.json").write_text("{}")
    with pytest.raises(ConfigError, match="dynamoctl dev down mine"):
        Instance("mine", tmp_path).status()


def test_down_removes_what_was_half_made_and_nothing_else(tmp_path: Path) -> None:
    instance = Instance("mine", tmp_path)
    instance.down()
    assert [] == list(tmp_path.iterdir())
    (tmp_path / "mine" / "pki").mkdir(parents=True)
    assert not instance.exists
    instance.down()
    assert not (tmp_path / "mine").exists()


def test_all_instances_are_the_folders_with_a_name(tmp_path: Path) -> None:
    for folder in ("b", "a", ".locks"):
        (tmp_path / folder).mkdir()
    assert ["a", "b"] == [instance.name for instance in Instance.all(tmp_path)]
