"""Named arrays in one file, the same bytes for the same arrays.

`numpy.savez` stamps the time into its archive, so that equal weights would get unequal digests.
"""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[np.floating]]) -> None:
    """Write what `numpy.load` reads.

    Args:
        path: The file.
        arrays: Arrays by name; the order does not matter.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            stream = io.BytesIO()
            array = np.ascontiguousarray(arrays[name])
            np.lib.format.write_array(stream, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH), stream.getvalue())
