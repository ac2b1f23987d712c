"""Models that the catalogue does not have, as rows of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dse.errors import InputError
from dse.problem.files import read_file
from dse.spaces.catalog.huggingface import read_config

from .launch import LIMIT
from .reading import row_of_launch

__all__ = ["model_row"]


def model_row(path: Path) -> Mapping[str, object]:
    """A model's row of the catalogue from a file: a launch line of Megatron-LM, or a Hugging Face ``config.json``.

    Raises:
        InputError: the file is neither, or has an architecture that is not known.
    """
    expected = "a config.json, or a launch line of Megatron-LM"
    text = "{" if path.suffix == ".json" else read_file(path, LIMIT, expected)
    if text.lstrip().startswith("{"):
        row: Mapping[str, object] = read_config(path)
        return row
    if "--" not in text:
        raise InputError(f"{path}: expected {expected}, but found neither")
    return row_of_launch(path)
