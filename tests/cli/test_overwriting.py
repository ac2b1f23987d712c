"""Commands that write files never lose what they read, nor others' files unless they are told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse.cli.overwriting import check_overwrites
from dse.errors import InputError
from tests.cli.conftest import Dse

ROWS = """gpu,n_gpus,model,weights_precision,batch,input_len,output_len,metric,value
h100-sxm,1,llama-3.1-8b,bf16,16,512,128,out_tokens_s_total,1800
h100-sxm,1,llama-3.1-8b,bf16,32,512,128,out_tokens_s_total,3000
"""


@pytest.mark.parametrize("command", ["calibrate", "validate"])
def test_measurements_are_not_written_over(dse: Dse, tmp_path: Path, command: str) -> None:
    data = tmp_path / "runs.csv"
    data.write_text(ROWS, encoding="utf-8")
    done = dse(command, "serving", "--data", str(data), "--out", str(data), "--force")
    assert done.code == 2
    assert "is read by this command" in done.err
    assert data.read_text(encoding="utf-8") == ROWS


def test_other_files_are_written_over_only_with_force(tmp_path: Path) -> None:
    other, own = tmp_path / "notes.csv", tmp_path / "own.csv"
    other.write_text("mine\n", encoding="utf-8")
    own.write_text("generation,gemm\n", encoding="utf-8")
    check_overwrites({own: ("generation,",), tmp_path / "new.csv": ("generation,",)}, ())
    check_overwrites({other: ("generation,",)}, (), force=True)
    with pytest.raises(InputError, match=r"notes\.csv is there and was not written by this command"):
        check_overwrites({other: ("generation,",)}, ())
