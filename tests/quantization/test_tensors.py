"""Tensors that users give: what is read, and what every kind of bad file is told."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from dse.cli import main
from dse.errors import InputError
from dse.spaces.quantization.example import example
from dse.spaces.quantization.measured import load, measure
from dse.spaces.quantization.tensors import read_matrix

VALUES = np.random.default_rng(31).standard_normal((8, 32)).astype(np.float32)


def safetensors(path: Path, tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]], cut: int = 0) -> Path:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    whole = struct.pack("<Q", len(text)) + text + data
    path.write_bytes(whole[: len(whole) - cut])
    return path


def npy(path: Path, values: NDArray[np.generic]) -> str:
    np.save(path, values, allow_pickle=values.dtype.hasobject)
    return str(path)


def test_floats_of_every_width_are_read(tmp_path: Path) -> None:
    bf16 = (VALUES.view(np.uint32) >> 16).astype(np.uint16)
    half = VALUES.astype(np.float16)
    e5m2 = (half.view(np.uint16) >> 8).astype(np.uint8)
    e4m3 = np.tile(np.array([0x00, 0x01, 0x38, 0xB8, 0x7E, 0x40, 0x08, 0x47], np.uint8), (8, 4))
    path = safetensors(
        tmp_path / "model.safetensors",
        {
            "f64": ("F64", (8, 32), VALUES.astype(np.float64).tobytes()),
            "f32": ("F32", (8, 32), VALUES.tobytes()),
            "f16": ("F16", (8, 32), half.tobytes()),
            "bf16": ("BF16", (8, 32), bf16.tobytes()),
            "e5m2": ("F8_E5M2", (8, 32), e5m2.tobytes()),
            "e4m3": ("F8_E4M3", (8, 32), e4m3.tobytes()),
        },
    )
    for name, precision in (("f64", 0), ("f32", 0), ("f16", 2**-11), ("bf16", 2**-7), ("e5m2", 2**-2)):
        assert read_matrix(f"{path}:{name}").values == pytest.approx(VALUES, rel=precision, abs=1e-4)
    assert read_matrix(f"{path}:e4m3").values[0, :8].tolist() == [0, 2**-9, 1, -1, 448, 2, 2**-6, 3.75]
    for values in (VALUES, np.asfortranarray(VALUES)):
        assert (read_matrix(npy(tmp_path / "w.npy", values)).values == VALUES).all()
    single = safetensors(tmp_path / "one.safetensors", {"w": ("F32", (8, 32), VALUES.tobytes())})
    assert read_matrix(str(single)).source.endswith("tensor 'w'")


BAD = {
    "integer": (np.ones((4, 4), np.int8), "holds int8, expected floating-point numbers"),
    "pickled": (np.array([[{}]], object), "holds objects, which are not read"),
    "vector": (np.ones(16), r"has shape \(16,\), expected two dimensions"),
    "cube": (np.ones((2, 2, 2)), r"has shape \(2, 2, 2\), expected two dimensions"),
    "empty": (np.ones((0, 4)), "and no values"),
    "zeros": (np.zeros((4, 4)), "all values are 0"),
    "nan": (np.where(np.arange(16).reshape(4, 4) == 6, np.nan, 1), "1 values are NaN.* row 1, column 2"),
    "inf": (np.full((4, 4), 1e300), "16 values are NaN, infinite or beyond float32"),
    "wide": (np.ones((1, 70_000)), "rows of 70,000 values, expected at most 65,536"),
}


@pytest.mark.parametrize("kind", BAD)
def test_matrices_that_cannot_be_used_are_told_with_their_place(tmp_path: Path, kind: str) -> None:
    values, expected = BAD[kind]
    path = npy(tmp_path / f"{kind}.npy", values)
    with pytest.raises(InputError, match=expected) as caught:
        read_matrix(path)
    assert str(caught.value).startswith(path)


def test_files_that_are_no_files_or_are_cut(tmp_path: Path) -> None:
    whole = Path(npy(tmp_path / "w.npy", VALUES)).read_bytes()
    safe = safetensors(tmp_path / "m.safetensors", {"up": ("F32", (8, 32), VALUES.tobytes())})
    cases = {
        "cut.npy": (
            whole[:-5],
            r"is truncated: shape \(8, 32\) in float32 takes 1,152 bytes, the file has 1,147",
        ),
        "header.npy": (whole[:40], "its header cannot be read"),
        "text.npy": (b"hello, this is no array", "found no mark of NumPy"),
        "none.npy": (b"", "the file is empty"),
        "cut.safetensors": (safe.read_bytes()[:-5], "tensor 'up': is truncated"),
        "short.safetensors": (b"\x05", "found no length of a header"),
        "huge.safetensors": (b"\xff" * 64, "found no length of a header"),
        "head.safetensors": (struct.pack("<Q", 999) + b"{}", "is truncated: its header has 999 bytes"),
        "json.safetensors": (struct.pack("<Q", 4) + b"[1,2", "expected a header in JSON"),
        "list.safetensors": (struct.pack("<Q", 2) + b"[]", "expected a header of tensors by name"),
        "odd.safetensors": (struct.pack("<Q", 9) + b'{"a": 12}', "tensor 'a': expected dtype, shape"),
        "weights.pt": (b"PK", "expected a .npy or .safetensors file, found .pt"),
    }
    for name, (content, expected) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=expected):
            read_matrix(str(path))
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(InputError, match="expected a file, found a folder"):
        read_matrix(str(tmp_path / "folder.npy"))
    with pytest.raises(InputError, match=r"No such file or directory; did you mean 'cut.npy'"):
        read_matrix(str(tmp_path / "cutt.npy"))


def test_names_and_types_of_tensors(tmp_path: Path) -> None:
    raw = VALUES.tobytes()
    path = safetensors(
        tmp_path / "m.safetensors",
        {
            "up_proj.weight": ("F32", (8, 32), raw),
            "down_proj.weight": ("F32", (8, 32), raw),
            "ids": ("I64", (8, 16), raw),
            "lies": ("F32", (8, 33), raw),
        },
    )
    with pytest.raises(
        InputError, match=r"tensor 'lies': has 1,024 bytes, but F32 of shape .8, 33. takes 1,056"
    ):
        read_matrix(f"{path}:up_proj.weight")
    path = safetensors(
        path,
        {
            "up.weight": ("F32", (8, 32), raw),
            "gate.weight": ("F32", (8, 32), raw),
            "ids": ("I64", (8, 16), raw),
        },
    )
    with pytest.raises(InputError, match=r"has no tensor 'up_weight'; did you mean 'up.weight'"):
        read_matrix(f"{path}:up_weight")
    with pytest.raises(
        InputError, match=r"has 2 matrices, name one behind the file as in m.safetensors:NAME; up"
    ):
        read_matrix(str(path))
    with pytest.raises(InputError, match="tensor 'ids' holds I64, expected F64"):
        read_matrix(f"{path}:ids")


def test_ten_gigabytes_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.npy"
    shape = (655_360, 4096)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        begin = file.tell()
        file.write(np.ones((1, 4096), np.float32).tobytes())
        file.truncate(begin + 4 * shape[0] * shape[1])  # sparse: 10.7 GB that take a page
    with pytest.raises(InputError, match="all values are 0"):  # the rows of seed 0 lie in the hole
        read_matrix(str(path), limit=2**16)
    with path.open("r+b") as file:
        for row in np.sort(np.random.default_rng(0).choice(shape[0], 16, replace=False)):
            file.seek(begin + int(row) * 4096 * 4)
            file.write(np.full(4096, 2.0, np.float32).tobytes())
    read = read_matrix(str(path), limit=2**16, seed=0)
    assert read.values.shape == (16, 4096)
    assert (read.values == 2).all()
    assert read.note.endswith("16 of its 655,360 rows (outputs) were read, drawn with seed 0")


def test_rows_of_a_file_that_is_stored_by_columns_are_the_same_and_it_is_told(tmp_path: Path) -> None:
    by_row = read_matrix(npy(tmp_path / "c.npy", VALUES), limit=96, seed=5)
    by_column = read_matrix(npy(tmp_path / "f.npy", np.asfortranarray(VALUES)), limit=96, seed=5)
    assert by_column.values.shape == (3, 32)
    assert (by_column.values == by_row.values).all()
    assert by_row.note.endswith("drawn with seed 5")
    assert by_column.note.endswith("seed 5; it is stored by columns, so that all of it was passed over")


# -- measuring ---------------------------------------------------------------------------------------------


def design(**other: object) -> dict[str, object]:
    asked: dict[str, object] = {
        "weights": "example", "activations": "auto", "seed": 0, "max_values": 2**20,
        "method": "rtn", "weight_bits": 4, "activation_bits": 16, "group": 128,
    }  # fmt: skip
    return asked | other


def test_the_example_is_the_same_every_time_and_told() -> None:
    w, x = example()
    assert w.shape == (256, 256)
    assert x.shape == (1024, 256)
    largest = np.abs(x).max(axis=0)
    assert (largest > 8 * np.median(largest)).sum() == 6
    found = {name: measure(design(method=name)) for name in ("rtn", "awq", "gptq-searched")}
    assert (
        found["gptq-searched"]["output_error"] < found["awq"]["output_error"] < found["rtn"]["output_error"]
    )
    assert found["rtn"]["bits_per_weight"] == 4.125
    assert any("network trained on made-up data" in note for note in load("example", "auto", 0, 2**20)[2])


def test_weights_of_ones_own_with_and_without_activations(tmp_path: Path) -> None:
    w = npy(tmp_path / "w.npy", VALUES)
    x = npy(tmp_path / "x.npy", np.random.default_rng(32).standard_normal((64, 32)))
    given = measure(design(weights=w, activations=x, method="q8_0", weight_bits=8, group=32))
    assert given["output_error"] < 1e-4
    assert given["bits_per_weight"] == 8.5
    assert "none were given" in load(w, "auto", 3, 2**20)[2][0]
    with pytest.raises(InputError, match=r"has 32 inputs and example has 256"):
        measure(design(weights=w, activations="example"))
    short = npy(tmp_path / "short.npy", np.ones((1, 32)))
    with pytest.raises(InputError, match="has one token"):
        measure(design(weights=w, activations=short))


def test_a_bad_file_is_refused_once_before_anything_is_measured(tmp_path: Path) -> None:
    path = npy(tmp_path / "w.npy", np.zeros((4, 32)))
    folder = tmp_path / "run"
    asked = [
        "search",
        "quantization-measured",
        "--n-trials",
        "3",
        "--set",
        f"weights={path}",
        "--out",
        str(folder),
    ]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 2
    text = " ".join(done.output.split())
    assert text.count("all values are 0") == 1
    assert "trial" not in text
    assert "Traceback" not in text
    assert not folder.exists()
