"""The C text of a matrix multiplication C = A B, row by row in memory, with tiles, loops and registers as chosen.

Tiling for caches and packing: Goto and van de Geijn 2008 (ACM TOMS 34:3), here without a kernel in assembly: the compiler
makes vectors of the innermost loop. Orders of the loops: Golub and Van Loan, Matrix Computations, section 1.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

__all__ = ["Tiling", "naive_source", "tiled_source"]

TYPES = {"fp32": "float", "fp64": "double"}


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a multiplication is done.

    Attributes:
        format: ``fp32`` or ``fp64``.
        order: the loops of a tile from the outermost.
        tile_m, tile_n, tile_k: rows, columns and summed products of a tile.
        rows, depth: rows of C and products of each that are one block of statements.
        pack: whether each tile of B is copied together first.
        threads: each has rows of its own.
    """

    format: Literal["fp32", "fp64"]
    order: str
    tile_m: int
    tile_n: int
    tile_k: int
    rows: int
    depth: int
    pack: bool
    threads: int


_LOOPS = {
    "i": "for (long i = {i0}; i < {i1}; i += {rows})",
    "j": "for (long j = 0; j < n; j++)",
    "k": "for (long p = {k0}; p < {k1}; p += {depth})",
}

_TILED = """\
static void block(const T *restrict A, long lda, const T *restrict B, long ldb, T *restrict C, long ldc,
                  long m, long n, long k)
{{
    long m1 = m / {rows} * {rows}, k1 = k / {depth} * {depth};
{loops}
}}

static void part(const T *A, const T *B, T *C, long n, long k, long low, long high)
{{
    T *packed = {packed};
    for (long j = 0; j < n; j += {tile_n}) {{
        long width = n - j < {tile_n} ? n - j : {tile_n};
        for (long p = 0; p < k; p += {tile_k}) {{
            long deep = k - p < {tile_k} ? k - p : {tile_k};
            const T *tile = B + p * n + j;
            long ld = n;
            if (packed) {{
                for (long q = 0; q < deep; q++)
                    memcpy(packed + q * width, tile + q * n, (size_t)width * sizeof(T));
                tile = packed;
                ld = width;
            }}
            for (long i = low; i < high; i += {tile_m}) {{
                long tall = high - i < {tile_m} ? high - i : {tile_m};
                block(A + i * k + p, k, tile, ld, C + i * n + j, n, tall, width, deep);
            }}
        }}
    }}
    free(packed);
}}

typedef struct {{ const T *A, *B; T *C; long n, k, low, high; }} Share;

static void *share(void *given)
{{
    Share *s = given;
    part(s->A, s->B, s->C, s->n, s->k, s->low, s->high);
    return NULL;
}}

static void multiply(const T *A, const T *B, T *C, long m, long n, long k)
{{
    pthread_t threads[{threads}];
    Share shares[{threads}];
    for (int t = 0; t < {threads}; t++) {{
        shares[t] = (Share){{A, B, C, n, k, m * t / {threads}, m * (t + 1) / {threads}}};
        if (t > 0 && pthread_create(&threads[t], NULL, share, &shares[t]) != 0)
            fail("a thread cannot be started");
    }}
    share(&shares[0]);
    for (int t = 1; t < {threads}; t++)
        pthread_join(threads[t], NULL);
}}
"""

_NAIVE = """\
static void multiply(const T *A, const T *B, T *C, long m, long n, long k)
{
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++)
            for (long p = 0; p < k; p++)
                C[i * n + j] += A[i * k + p] * B[p * n + j];
}
"""


def naive_source(format: Literal["fp32", "fp64"]) -> str:  # noqa: A002 - the space's own word
    """Three plain loops."""
    return _program(format, _NAIVE)


def tiled_source(tiling: Tiling) -> str:
    """The program of a tiling."""
    regions = [
        _region(tiling.order, rows=rows, depth=depth, i=i, k=k)
        for i, rows in ((("0", "m1"), tiling.rows), (("m1", "m"), 1))
        for k, depth in ((("0", "k1"), tiling.depth), (("k1", "k"), 1))
    ]
    room = f"room({tiling.tile_k} * {tiling.tile_n})" if tiling.pack else "NULL"
    text = _TILED.format(
        loops="\n".join(regions), packed=room, rows=tiling.rows, depth=tiling.depth, threads=tiling.threads,
        tile_m=tiling.tile_m, tile_n=tiling.tile_n, tile_k=tiling.tile_k,
    )  # fmt: skip
    return _program(tiling.format, text)


def _region(order: str, *, rows: int, depth: int, i: tuple[str, str], k: tuple[str, str]) -> str:
    """Loops over a part of a tile in which every block of statements is whole."""
    loops = [
        "    " * (1 + at)
        + _LOOPS[name].format(i0=i[0], i1=i[1], k0=k[0], k1=k[1], rows=rows, depth=depth)
        + (" {" if at == 2 else "")
        for at, name in enumerate(order)
    ]
    indent = "    " * 4
    body = []
    for r in range(rows):
        products = [f"A[(i + {r}) * lda + p + {d}] * B[(p + {d}) * ldb + j]" for d in range(depth)]
        body.append(f"{indent}T s{r} = C[(i + {r}) * ldc + j];")
        body += [f"{indent}s{r} += {product};" for product in products]
        body.append(f"{indent}C[(i + {r}) * ldc + j] = s{r};")
    return "\n".join([*loops, *body, "            }"])


def _program(format: Literal["fp32", "fp64"], multiply: str) -> str:  # noqa: A002
    """The whole program around a function ``multiply``."""
    frame = files("dse.spaces.kernel").joinpath("frame.c").read_text(encoding="utf-8")
    return frame.replace("@TYPE@", TYPES[format]).replace("@MULTIPLY@", multiply)
