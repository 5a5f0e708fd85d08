"""Writes named arrays to one file, with the same bytes for the same arrays.

`numpy.savez` writes the time into its archive, so that equal weights would get different digests.
"""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# The earliest time that the ZIP format can express.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[np.floating]]) -> None:
    """Write arrays that `numpy.load` can read.

    Args:
        path: The file.
        arrays: Arrays by name; they are written in the order of their names.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            stream = io.BytesIO()
            array = np.ascontiguousarray(arrays[name])
            np.lib.format.write_array(stream, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH), stream.getvalue())
