"""Columns of Arrow, and what they say as arrays of numpy.

Not here: what a column may hold (``checked_lists``), and the numbers of texts (``numbering``).
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.compute as pc

from metrics.weights import BoolArray, FloatArray, IntArray
from pipeline.log.numbering import IdNumbers

_BYTES = np.array([0.0, 1.0, np.nan])
"""What a byte stands for that is held in place of a number: 0, 1, or none."""


def in_one(column: Any) -> pyarrow.Array:
    """A column as one array."""
    if isinstance(column, pyarrow.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def plain(array: pyarrow.Array) -> pyarrow.Array:
    """The values of a column, none of them by its place in a dictionary."""
    return array.dictionary_decode() if pyarrow.types.is_dictionary(array.type) else array


def filled(array: pyarrow.Array) -> pyarrow.Array:
    """The array with something where nothing is."""
    if not array.null_count:
        return array
    if pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.fill_null("" if pyarrow.types.is_string(array.type) else 0)


def as_bools(array: pyarrow.Array) -> BoolArray:
    """Truths, true where one is missing."""
    found: BoolArray = array.fill_null(True).to_numpy(zero_copy_only=False)
    return found


def as_doubles(array: pyarrow.Array) -> tuple[FloatArray, BoolArray]:
    """Numbers as doubles, and which are missing: these are NaN."""
    missing = np.zeros(len(array), dtype=np.bool_)
    if not array.null_count:
        values = array.to_numpy(zero_copy_only=False)
        return values.astype(np.float64, copy=False), missing
    missing = as_bools(array.is_null())
    known = array.fill_null(False if pyarrow.types.is_boolean(array.type) else 0)
    values = known.to_numpy(zero_copy_only=False).astype(np.float64)
    values[missing] = np.nan
    return values, missing


def changes(array: pyarrow.Array) -> BoolArray:
    """Which rows differ from the one before, shape (rows - 1,); nothing is like nothing."""
    if pyarrow.types.is_dictionary(array.type):
        codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        changed: BoolArray = codes[1:] != codes[:-1]
        return changed
    one, other = array.slice(1), array.slice(0, max(len(array) - 1, 0))
    differs = pc.not_equal(one, other)
    if array.null_count:
        differs = pc.or_(differs.fill_null(False), pc.xor(one.is_null(), other.is_null()))
    return as_bools(differs)


def as_codes(values: IdNumbers, array: pyarrow.Array) -> IntArray:
    """Numbers of texts from 1 on; 0 where there is none."""
    if pyarrow.types.is_dictionary(array.type):
        known = np.append(values.of(array.dictionary) + 1, 0).astype(np.int64)
        at = array.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
        codes: IntArray = known.take(at)
        return codes
    found = values.of(filled(array)).astype(np.int64) + 1
    if array.null_count:
        found[as_bools(array.is_null())] = 0
    return found


def coded(values: FloatArray, missing: BoolArray) -> npt.NDArray[Any]:
    """Numbers in as few bytes as hold them: see ``decoded``.  The missing ones are NaN.

    Any other NaN becomes infinite, which no rule allows either: it must not be taken for missing.
    """
    ones = values == 1.0
    if (ones | (values == 0.0) | missing).all():
        byte: npt.NDArray[np.uint8] = ones.view(np.uint8) | missing.view(np.uint8) << 1
        return byte
    values = np.where(np.isnan(values) & ~missing, np.inf, values)
    if (np.abs(values) < 2**31).all() and (np.rint(values) == values).all():
        return values.astype(np.int32)
    return values


def decoded(column: npt.NDArray[Any]) -> FloatArray:
    """Numbers as doubles, NaN where there is none: of a byte 0, 1 or none, else themselves."""
    if column.dtype == np.uint8:
        return _BYTES.take(column)
    return column.astype(np.float64, copy=False)
