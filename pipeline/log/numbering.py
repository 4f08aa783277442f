"""Ids as small whole numbers, 0, 1, 2 ...: exact, without sorting, and never a step per row.

A text of up to eight bytes is one 64-bit word, a longer one is several, and a whole number is its
own word.  Words are multiplied and shifted into a slot of a table, from which probing goes on where
another id has taken it; every number that is found is compared with its words again, so that two
ids never share one.

Not here: which ids a row may have (``schemas.rules``).
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow

from metrics.weights import IntArray

Words: TypeAlias = npt.NDArray[np.uint64]
Numbers: TypeAlias = npt.NDArray[np.int32]

_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
"""Odd constants with bits in all places: multiplying by one is a bijection of 64-bit words."""
_FIRST_BITS = 14
_LOAD = 4
"""Slots for each id: with a quarter taken, nearly all are found where they are looked for first."""
_MOST_NEW = 1 << 15
"""Missing ids that are sorted at a time: most of those of a first chunk are the same few."""
_NEAR = 1 << 22
"""Whole numbers less than this apart are looked up in a plain array, 16 MB at most."""
_LONG_WORDS = 32
"""Words of a text beyond which texts are looked up one by one, as Python does."""
_BYTES = np.array([(1 << 8 * length) - 1 for length in range(9)], dtype=np.uint64)
"""Masks of the first bytes of a word, by how many there are."""


class IdNumbers:
    """Numbers of the distinct ids of a column, in order of first appearance, chunk by chunk."""

    def __init__(self) -> None:
        self._texts: dict[int, _Table] = {}
        self._long: dict[str, int] = {}
        self._whole = _WholeNumbers()
        self._seen: list[pyarrow.Array] = []
        self._shared: tuple[pyarrow.Array, Numbers] | None = None
        self.count = 0

    def of(self, ids: pyarrow.Array) -> Numbers:
        """The numbers of ``ids``, shape (rows,): all texts or all whole numbers, none missing."""
        if pyarrow.types.is_dictionary(ids.type):
            places = ids.indices.to_numpy(zero_copy_only=False)
            of_rows: Numbers = self._of_dictionary(ids.dictionary).take(places)
            return of_rows
        if pyarrow.types.is_integer(ids.type):
            values = ids.to_numpy(zero_copy_only=False).astype(np.int64)
            found, first = self._whole.of(values, self.count)
        else:
            found, first = self._of_texts(ids)
        if len(first):
            self._seen.append(ids.take(pyarrow.array(first)))
            self.count += len(first)
        return found

    def _of_dictionary(self, values: pyarrow.Array) -> Numbers:
        """The numbers of values that one batch after the other may share."""
        if self._shared is None or not self._shared[0].equals(values):
            self._shared = values, self.of(values)
        return self._shared[1]

    @property
    def ids(self) -> pyarrow.ChunkedArray:
        """The distinct ids, by number."""
        kind = self._seen[0].type if self._seen else pyarrow.string()
        return pyarrow.chunked_array(self._seen, kind)

    def _of_texts(self, ids: pyarrow.Array) -> tuple[Numbers, IntArray]:
        data, start, length = text_bytes(ids)
        words = np.maximum(length + 7 >> 3, 1)
        # Words end in zeros, so that a text with some of its own would be taken for another.
        zeros = np.flatnonzero(data == 0)
        words[np.searchsorted(start, zeros, side="right") - 1] = _LONG_WORDS + 1
        least, most = (int(words.min()), int(words.max())) if len(words) else (1, 1)
        if least == most and most <= _LONG_WORDS:
            table = self._texts.setdefault(most, _Table(most))
            return table.numbers(_words(data, start, length, most), self.count)
        found = np.empty(len(length), dtype=np.int32)
        first: list[IntArray] = []
        count = self.count
        words = np.minimum(words, _LONG_WORDS + 1)
        for size in np.unique(words).tolist():
            here = np.flatnonzero(words == size)
            if size > _LONG_WORDS:
                numbers, new = self._of_long(ids.take(pyarrow.array(here)), count)
            else:
                table = self._texts.setdefault(size, _Table(size))
                keys = _words(data, start[here], length[here], size)
                numbers, new = table.numbers(keys, count)
            found[here] = numbers
            first.append(here[new])
            count += len(new)
        return found, np.concatenate(first) if first else np.empty(0, dtype=np.int64)

    def _of_long(self, ids: pyarrow.Array, count: int) -> tuple[Numbers, IntArray]:
        """Numbers of texts that no table of words is made for."""
        encoded = ids.dictionary_encode()
        values, indices = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        new = [at for at, value in enumerate(values) if value not in self._long]
        self._long |= {values[at]: count + place for place, at in enumerate(new)}
        numbers = np.array([self._long[value] for value in values], dtype=np.int32)
        return numbers.take(indices), np.unique(indices, return_index=True)[1][new]


def text_bytes(texts: pyarrow.Array) -> tuple[npt.NDArray[np.uint8], IntArray, IntArray]:
    """The bytes of ``texts``, and where each text begins there and how long it is."""
    texts = texts.cast(pyarrow.string())
    _, offsets_buffer, data_buffer = texts.buffers()
    if not len(texts) or data_buffer is None:
        nothing = np.zeros(len(texts), dtype=np.int64)
        return np.zeros(0, dtype=np.uint8), nothing, nothing
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)
    offsets = offsets[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]]
    return data, offsets[:-1] - offsets[0], np.diff(offsets)


def _words(
    data: npt.NDArray[np.uint8], start: IntArray, length: IntArray, words: int
) -> list[Words]:
    """Texts as ``words`` 64-bit words each, zeros behind their end."""
    size = int(length[0]) if len(length) else 0
    if len(length) * size == len(data) and (length == size).all():
        table = np.zeros((len(length), 8 * words), dtype=np.uint8)
        table[:, :size] = data.reshape(len(length), size)
        whole = table.view(np.uint64)
        return [np.ascontiguousarray(whole[:, at]) for at in range(words)]
    # A word that begins anywhere is made of two that begin at a multiple of eight.
    padded = np.zeros((len(data) >> 3) + 2 + words << 3, dtype=np.uint8)
    padded[: len(data)] = data
    aligned = padded.view(np.uint64)
    found = []
    for at in range(words):
        here = start + 8 * at
        place = np.minimum(here >> 3, len(aligned) - 2)
        shift = (here & 7).astype(np.uint64) << np.uint64(3)
        low = aligned.take(place) >> shift
        high = aligned.take(place + 1) << (np.uint64(63) - shift) << np.uint64(1)
        found.append((low | high) & _BYTES.take(np.clip(length - 8 * at, 0, 8)))
    return found


class _Table:
    """Numbers of keys of some 64-bit words each: open addressing, in arrays."""

    def __init__(self, words: int) -> None:
        self._keys = np.empty((words, 1024), dtype=np.uint64)
        self._hashes = np.empty(1024, dtype=np.uint64)
        self._numbers = np.empty(1024, dtype=np.int32)
        self._count, self._seed = 0, 0
        self._make(_FIRST_BITS)

    def numbers(self, keys: Sequence[Words], count: int) -> tuple[Numbers, IntArray]:
        """Numbers of ``keys``, words of shape (rows,), and the first row of each that is new.

        New keys are numbered from ``count`` on.
        """
        first = np.empty(0, dtype=np.int64)
        while True:
            hashes = self._hash(keys)
            found = self._find(hashes)
            missing = np.flatnonzero(found < 0)
            while len(missing):
                piece = missing[:_MOST_NEW]
                new, at = np.unique(hashes[piece], return_index=True)
                rows = piece[at]
                self._add(new, [word[rows] for word in keys], count)
                first = np.concatenate([first, rows])
                count += len(rows)
                found[missing] = self._find(hashes[missing])
                missing = missing[found[missing] < 0]
            if len(keys) == 1 or self._are(found, keys):
                return self._numbers.take(found), first
            self._hash_anew()

    def _are(self, found: Numbers, keys: Sequence[Words]) -> bool:
        """Whether what was found has the very words that were looked for."""
        return all(
            np.array_equal(known.take(found), word)
            for known, word in zip(self._keys, keys, strict=True)
        )

    def _hash(self, keys: Sequence[Words]) -> Words:
        """A hash of each key; that of a single word is the hash of no other."""
        odd, other = (np.uint64(each * (2 * self._seed + 1) % 2**64) for each in _ODD)
        found = keys[0] * odd
        for word in keys[1:]:
            found ^= found >> np.uint64(29)
            found += word
            found *= other
        if len(keys) > 1:
            found ^= found >> np.uint64(32)
            found *= odd
        return found

    def _hash_anew(self) -> None:
        """Take another hash, by which all keys that are known differ: two had the same one."""
        known = list(self._keys[:, : self._count])
        while True:
            self._seed += 1
            hashes = self._hash(known)
            if len(np.unique(hashes)) == self._count:
                break
        self._hashes[: self._count] = hashes
        self._make(len(self._slots).bit_length() - 1)
        self._place(hashes, np.arange(self._count, dtype=np.int32))

    def _make(self, bits: int) -> None:
        self._shift = np.uint64(64 - bits)
        self._slots = np.full(1 << bits, -1, dtype=np.int32)
        self._slot_hashes = np.zeros(1 << bits, dtype=np.uint64)

    def _find(self, hashes: Words) -> Numbers:
        """Places of keys among those known, -1 where one is not; by hash alone."""
        slot = (hashes >> self._shift).view(np.int64)
        found = self._slots.take(slot)
        rest = np.flatnonzero((self._slot_hashes.take(slot) != hashes) & (found >= 0))
        slot = slot[rest]
        while len(rest):
            slot = slot + 1 & len(self._slots) - 1
            there = self._slots.take(slot)
            found[rest] = there
            goes_on = (self._slot_hashes.take(slot) != hashes[rest]) & (there >= 0)
            rest, slot = rest[goes_on], slot[goes_on]
        return found

    def _add(self, hashes: Words, keys: Sequence[Words], count: int) -> None:
        """Add new keys of distinct ``hashes``."""
        end = self._count + len(hashes)
        if end > len(self._hashes):
            size = max(end, 2 * len(self._hashes))
            self._keys = _grown(self._keys, size)
            self._hashes, self._numbers = _grown(self._hashes, size), _grown(self._numbers, size)
        here = slice(self._count, end)
        for known, word in zip(self._keys, keys, strict=True):
            known[here] = word
        self._hashes[here] = hashes
        self._numbers[here] = np.arange(count, count + len(hashes))
        self._count = end
        if end * _LOAD > len(self._slots):
            self._make(int(end * _LOAD * 2).bit_length())
            here = slice(0, end)
        self._place(self._hashes[here], np.arange(here.start, end, dtype=np.int32))

    def _place(self, hashes: Words, numbers: Numbers) -> None:
        """Give each key the first free slot from its own on."""
        slot = (hashes >> self._shift).view(np.int64)
        while len(hashes):
            free = np.flatnonzero(self._slots[slot] < 0)
            self._slots[slot[free]] = numbers[free]
            got_it = free[self._slots[slot[free]] == numbers[free]]
            self._slot_hashes[slot[got_it]] = hashes[got_it]
            left = np.ones(len(hashes), dtype=np.bool_)
            left[got_it] = False
            hashes, numbers, slot = hashes[left], numbers[left], slot[left]
            slot = slot + 1 & len(self._slots) - 1


class _WholeNumbers:
    """Numbers of whole numbers: by their distance from the least while all are near each other."""

    def __init__(self) -> None:
        self._low = 0
        self._number = np.empty(0, dtype=np.int32)
        self._table: _Table | None = None

    def of(self, values: IntArray, count: int) -> tuple[Numbers, IntArray]:
        """As ``_Table.numbers``."""
        if not len(values):
            return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
        if self._table is None and not self._reach(int(values.min()), int(values.max())):
            self._table = _Table(1)
            known = np.flatnonzero(self._number >= 0)
            in_order = known[np.argsort(self._number[known])]
            self._table.numbers([(in_order + self._low).view(np.uint64)], 0)
        if self._table is not None:
            return self._table.numbers([values.view(np.uint64)], count)
        place = values - self._low
        found = self._number.take(place)
        missing = np.flatnonzero(found < 0)
        if not len(missing):
            return found, missing
        new, at = np.unique(place[missing], return_index=True)
        self._number[new] = np.arange(count, count + len(new))
        return self._number.take(place), missing[at]

    def _reach(self, low: int, high: int) -> bool:
        """Make the array hold ``low`` to ``high`` too; False where they are too far apart."""
        if len(self._number):
            low, high = min(low, self._low), max(high, self._low + len(self._number) - 1)
        if high - low >= _NEAR:
            return False
        if high - low + 1 > len(self._number):
            # Some room, so that ids that grow do not move the array each time.
            number = np.full(min(_NEAR, 2 * (high - low + 1)), -1, dtype=np.int32)
            number[self._low - low :][: len(self._number)] = self._number
            self._low, self._number = low, number
        return True


def _grown(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """The array with room for ``size`` entries on its last axis."""
    grown = np.empty((*array.shape[:-1], size), dtype=array.dtype)
    grown[..., : array.shape[-1]] = array
    return grown
