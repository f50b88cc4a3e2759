"""What keeps a process small: pandas stays out, and nothing breaks."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pandas", reason="without pandas there is nothing to keep out")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout


def test_pandas_is_not_loaded_by_making_an_array() -> None:
    code = (
        "import sys; from wherry.contract.memory import *; import pyarrow as pa\n"
        "keep_pandas_out(); give_memory_back()\n"
        "pa.array([{'a': 1}]).to_pylist(); print('pandas' in sys.modules)\n"
        "import pandas; print(pandas.Series([1]).sum())\n"
    )
    assert run(code) == "False\n1\n"


def test_a_process_that_has_pandas_keeps_using_it_with_arrow() -> None:
    code = (
        "import pandas, pyarrow as pa; from wherry.contract.memory import *\n"
        "keep_pandas_out(); print(pa.array(pandas.Series([1, None])).null_count)\n"
    )
    assert run(code) == "1\n"
