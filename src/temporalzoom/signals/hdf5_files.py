"""HDF5 files that hold what they show: a link or a data set that lies in another file is refused.

An HDF5 file may name any file of the machine as the place of its data. Whoever opens a stranger's features would have
that file read, and its content end up in results.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temporalzoom.errors import InputError


@contextmanager
def opened_hdf5(path: Path) -> Iterator[Any]:
    """The open file (h5py.File). One that leads to other files raises InputError; what is no HDF5, OSError."""
    try:
        import h5py
    except ImportError as error:
        raise InputError(f'{path}: reading it needs h5py: pip install "temporalzoom[hdf5]"') from error

    def look(name: str, link: Any) -> str | None:
        if isinstance(link, h5py.ExternalLink):
            return f"{path}: {name!r} is a link to another file ({link.filename!r}), which is not followed"
        item = file.get(name) if isinstance(link, h5py.HardLink) else None
        if isinstance(item, h5py.Dataset) and (item.is_virtual or item.external):
            return f"{path}: the data of {name!r} lie in another file, which is not read"
        return None

    with h5py.File(path, "r") as file:
        outside = file.visititems_links(look)  # the first that is not None
        if outside is not None:
            raise InputError(outside)
        yield file
