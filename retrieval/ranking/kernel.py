"""Inner products of half-precision vectors as machine code, in the order in which pgvector adds.

NumPy and PyTorch add in orders of their own. numba compiles these loops, for the processor that is
there, when the module is imported; they run without Python's lock, and know what they work on by
its address alone.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from retrieval.ranking.arithmetic import LANES

#: Rows and queries whose sums are kept in registers together.
TILE: Final = 4
# Rows of which the vectors stay in a core's own cache while they meet all queries.
_BLOCK: Final = 64

_HALF, _SINGLE, _I32 = ir.HalfType(), ir.FloatType(), ir.IntType(32)
_HALVES, _SINGLES = ir.VectorType(_HALF, LANES), ir.VectorType(_SINGLE, LANES)
# The product of two halves is exact in single precision: in one instruction or two, the sum is the
# same.
_FUSED: Final = ("contract",)
_ADDRESS, _SIZE = types.uintp, types.intp


class _Code:
    """Writes the instructions for the products of some rows with some queries."""

    def __init__(self, builder: Any, row: Any, query: Any, width: Any, shape: tuple[int, int]):
        rows, queries = shape
        self._builder, self._size = builder, width.type
        self._rows = [self._place(row, _HALF, self._times(width, i)) for i in range(rows)]
        self._queries = [self._place(query, _SINGLE, self._times(width, j)) for j in range(queries)]
        self._cells = [(i, j) for i in range(rows) for j in range(queries)]

    def write(self, dimension: Any, out: Any, apart: Any) -> None:
        """The whole: lanes, what they come to, the columns behind them, and the scores to `out`."""
        builder = self._builder
        lanes, totals = self._sums(_SINGLES), self._sums(_SINGLE)
        whole = builder.and_(dimension, self._number(-LANES))
        with cgutils.for_range(builder, builder.udiv(whole, self._number(LANES))) as loop:
            column = builder.mul(loop.index, self._number(LANES))
            self._add(lanes, column, halves=_HALVES, singles=_SINGLES)
        for cell in self._cells:
            builder.store(self._pairwise(builder.load(lanes[cell])), totals[cell])
        with cgutils.for_range(builder, builder.sub(dimension, whole)) as loop:
            column = builder.add(whole, loop.index)
            self._add(totals, column, halves=_HALF, singles=_SINGLE)
        for i, j in self._cells:
            place = builder.add(self._number(i), self._times(apart, j))
            # Nothing added makes one zero of the two that floats have.
            score = builder.fadd(builder.load(totals[i, j]), ir.Constant(_SINGLE, 0.0))
            builder.store(score, self._place(out, _SINGLE, place)).align = 4

    def _add(
        self, sums: dict[tuple[int, int], Any], column: Any, *, halves: Any, singles: Any
    ) -> None:
        """Add the products in a column, or in eight from it on, to the sums of all cells."""
        builder = self._builder
        rows = [builder.fpext(self._read(row, halves, column, 2), singles) for row in self._rows]
        queries = [self._read(query, singles, column, 4) for query in self._queries]
        for i, j in self._cells:
            product = builder.fmul(rows[i], queries[j], flags=_FUSED)
            total = builder.fadd(builder.load(sums[i, j]), product, flags=_FUSED)
            builder.store(total, sums[i, j])

    def _pairwise(self, lanes: Any) -> Any:
        builder = self._builder
        sums = [builder.extract_element(lanes, ir.Constant(_I32, lane)) for lane in range(LANES)]
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [builder.fadd(sums[lane], sums[lane + half]) for lane in range(half)]
        return sums[0]

    def _sums(self, kind: Any) -> dict[tuple[int, int], Any]:
        zero = ir.Constant(kind, None)
        return {cell: cgutils.alloca_once_value(self._builder, zero) for cell in self._cells}

    def _read(self, start: Any, kind: Any, column: Any, alignment: int) -> Any:
        place = self._builder.gep(start, [column])
        found = self._builder.load(self._builder.bitcast(place, kind.as_pointer()))
        found.align = alignment
        return found

    def _place(self, address: Any, kind: Any, distance: Any) -> Any:
        start = self._builder.inttoptr(address, kind.as_pointer())
        return self._builder.gep(start, [distance])

    def _times(self, value: Any, number: int) -> Any:
        return self._builder.mul(value, self._number(number))

    def _number(self, value: int) -> Any:
        return ir.Constant(self._size, value)


def _tile(rows: int, queries: int) -> Any:
    """The products of so many rows with so many queries, as a function for compiled ones."""

    @intrinsic
    def tile(
        context: Any, row: Any, width: Any, query: Any, dimension: Any, out: Any, apart: Any
    ) -> Any:
        """`row` and `query` are the addresses of the first ones, in half and in single precision,
        each `width` numbers long of which `dimension` count; scores go to `out`, those of the next
        query `apart` numbers behind.
        """

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            row, width, query, dimension, out, apart = values
            _Code(builder, row, query, width, (rows, queries)).write(dimension, out, apart)
            return context.get_dummy_value()

        return types.void(_ADDRESS, _SIZE, _ADDRESS, _SIZE, _ADDRESS, _SIZE), code

    return tile


_one, _row, _square = _tile(1, 1), _tile(1, TILE), _tile(TILE, TILE)


@njit(types.void(_ADDRESS, _SIZE, _SIZE, _ADDRESS, _SIZE, _ADDRESS), nogil=True)
def one(row, width, count, query, dimension, out):  # type: ignore[no-untyped-def]
    """Scores of the `count` rows from an address on, each `width` halves, for one query."""
    for i in range(count):
        _one(row + 2 * i * width, width, query, dimension, out + 4 * i, 0)


@njit(types.void(_ADDRESS, _SIZE, types.int64[::1], _ADDRESS, _SIZE, _ADDRESS), nogil=True)
def some(first, width, places, query, dimension, out):  # type: ignore[no-untyped-def]
    """Scores of the rows at these places for one query."""
    for i in range(len(places)):
        _one(first + 2 * places[i] * width, width, query, dimension, out + 4 * i, 0)


@njit(
    types.void(_ADDRESS, _SIZE, _SIZE, _ADDRESS, _SIZE, _SIZE, _ADDRESS, _SIZE),
    nogil=True,
)
def many(row, width, count, query, queries, dimension, out, apart):  # type: ignore[no-untyped-def]
    """Scores of rows for several queries, whole tiles of them; those of the next query `apart`
    numbers behind.
    """
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        for j in range(0, queries, TILE):
            asked, target = query + 4 * j * width, out + 4 * j * apart
            i = start
            while i + TILE <= stop:
                _square(row + 2 * i * width, width, asked, dimension, target + 4 * i, apart)
                i += TILE
            while i < stop:
                _row(row + 2 * i * width, width, asked, dimension, target + 4 * i, apart)
                i += 1
