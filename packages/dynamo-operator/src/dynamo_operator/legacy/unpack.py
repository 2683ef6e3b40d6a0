"""Unpack an untrusted archive: no member may be, or lead, outside the target folder.

The filters of `tarfile` are not used: they need Python 3.11.4, and Debian 12 has 3.11.2.
"""

import errno
import os
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from dynamo_legacy.archive import ArchiveError, BoundedHeader

MOST_BYTES: Final = 20 * 1024**3
"""Most bytes of an archive, and of its content."""
MOST_FILES: Final = 200_000
_MOST_OF_NAME: Final = 1000
"""Characters of a member's name: with the folder, a path stays below the 4,096 bytes of Linux."""
_MODE: Final = 0o755
"""The bits of a mode that are kept: no special bits, not writable for others."""
_READABLE, _OPEN = 0o600, 0o700
_OF_NAMES: Final = frozenset(
    (errno.EEXIST, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR)
)
"""Errors of the file system that names in an archive cause, so a retry fails too."""


class BadArchive(Exception):
    """The archive or the request is invalid; a retry does not help."""


def unpack(archive: BinaryIO, into: Path) -> None:
    """Unpack a tar into a new folder; the compression is detected by its first bytes.

    Raises:
        BadArchive: it is not a tar, it is too large, a member leads out of the folder, or names conflict.
        OSError: for example, the disk is full.
    """
    into.mkdir(parents=True)
    root = into.resolve()
    size, count = 0, 0
    try:
        with tarfile.open(fileobj=archive, mode="r|*", tarinfo=BoundedHeader, errorlevel=2) as tar:
            tar.extraction_filter = _as_checked  # Python 3.14 has another default
            for member in tar:
                size, count = size + abs(member.size), count + 1
                if size > MOST_BYTES or count > MOST_FILES:
                    raise BadArchive(
                        f"the archive is too large ({MOST_BYTES} bytes, {MOST_FILES} files at most)"
                    )
                _check(member, root)
                _settle(member)
                tar.extract(member, root)
    except OSError as error:
        if error.errno in _OF_NAMES:
            raise BadArchive(f"the archive cannot be unpacked: {error.strerror}") from error
        raise
    except (ArchiveError, tarfile.TarError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise BadArchive(f"the archive cannot be read: {error}") from error
    except RecursionError as error:
        raise BadArchive("the archive cannot be read: too many headers of one file") from error
    _check_links(root)


def _as_checked(member: tarfile.TarInfo, _: str) -> tarfile.TarInfo:
    """The member itself: `_check` and `_settle` did all that a filter of `tarfile` would."""
    return member


def _check(member: tarfile.TarInfo, root: Path) -> None:
    """Refuse a member that is, or leads, outside the folder, given what was unpacked before."""
    place = PurePosixPath(member.name)
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise _refused(member, "neither a file nor a folder nor a link")
    if place.is_absolute() or ".." in place.parts or len(member.name) > _MOST_OF_NAME:
        raise _refused(member, "its name")
    above = (root / place).parent if place.parts else root  # "." is the folder itself
    if not (_is_inside(above, root) and _is_inside(root / place, root)):
        raise _refused(
            member, "through a link"
        )  # `tarfile` opens a file of that name, if it is one
    if member.issym() or member.islnk():
        target = PurePosixPath(member.linkname)
        start = root if member.islnk() else above
        is_bad = target.is_absolute() or len(member.linkname) > _MOST_OF_NAME
        if member.islnk() and (root / target).is_symlink():
            # It would be the same link in another folder, where it leads elsewhere.
            raise _refused(member, "a hard link to a link")
        if is_bad or not _is_inside(start / target, root):
            raise _refused(member, f"to {member.linkname[:100]}")


def _settle(member: tarfile.TarInfo) -> None:
    """Make the current user own a member, and remove special bits of its mode."""
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    member.mode = member.mode & _MODE | (_OPEN if member.isdir() else _READABLE)


def _check_links(root: Path) -> None:
    """Refuse links that lead outside when all is unpacked: a later link may redirect an earlier one."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.is_symlink() and not _is_inside(path, root):
                raise BadArchive(
                    f"the archive leads out of its folder: {path.relative_to(root)}, through links"
                )


def _is_inside(path: Path, root: Path) -> bool:
    """Whether a path is inside. Not with `Path.resolve`, which raises for a loop of links."""
    return Path(os.path.realpath(path)).is_relative_to(root)


def _refused(member: tarfile.TarInfo, why: str) -> BadArchive:
    return BadArchive(f"the archive leads out of its folder: {member.name[:100]}: {why}")
