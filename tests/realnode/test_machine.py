from pathlib import Path

from realnode.machine import ControlGroup


def hierarchies(root: Path, *names: str) -> ControlGroup:
    """A group in a tree as the first version has it, with these controllers."""
    for name in names:
        (root / name).mkdir()
    return ControlGroup("mine", root)


def test_a_group_is_made_in_every_tree_of_the_first_version(tmp_path: Path) -> None:
    hierarchies(tmp_path, "cpu", "memory").create()
    assert (tmp_path / "cpu" / "mine").is_dir()
    assert (tmp_path / "memory" / "mine").is_dir()


def test_a_group_is_made_once_in_the_one_tree_of_the_second_version(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    group = hierarchies(tmp_path, "system.slice")
    group.create()
    group.create()
    assert (tmp_path / "mine").is_dir()
    assert not (tmp_path / "system.slice" / "mine").exists()


def test_processes_are_found_in_groups_below_too(tmp_path: Path) -> None:
    group = hierarchies(tmp_path, "cpu", "memory")
    group.create()
    (tmp_path / "cpu" / "mine" / "pod" / "container").mkdir(parents=True)
    (tmp_path / "cpu" / "mine" / "pod" / "container" / "cgroup.procs").write_text("7\n8\n")
    (tmp_path / "memory" / "mine" / "cgroup.procs").write_text("8\n9\n")
    assert {7, 8, 9} == group.processes()


def test_all_that_is_empty_is_removed(tmp_path: Path) -> None:
    group = hierarchies(tmp_path, "cpu")
    group.create()
    (tmp_path / "cpu" / "mine" / "pod" / "container").mkdir(parents=True)
    (tmp_path / "cpu" / "other").mkdir()
    group.remove()
    assert ["other"] == [entry.name for entry in (tmp_path / "cpu").iterdir()]
    group.remove()


def test_a_group_that_was_never_made_has_no_processes(tmp_path: Path) -> None:
    assert set() == hierarchies(tmp_path, "cpu").processes()
