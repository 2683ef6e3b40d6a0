"""Private keys. That certificates and keys fit each other is seen by each test on a control plane."""

import stat
from pathlib import Path

from devcluster.certificates import write_private


def test_written_files_are_closed_to_others_even_when_they_were_open_before(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert b"new" == path.read_bytes()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
