"""The command line, without a sidecar."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.conformance.cli import EXIT_USAGE, main


def test_list_names_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert "l2-configure-fencing\n" in printed
    assert "l2-read-heartbeat [slow]\n" in printed


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([], "Give --manifest DIR, or a command line after --."),
        (["--manifest", "$tmp"], "has no sidecar.yaml"),
        (["--known-failing", "$tmp/none", "--manifest", "$tmp"], "none can't be read"),
        (["--", "/no/such/program"], "/no/such/program can't be started"),
        (["--case", "no-such-case", "--", "true"], "No case was selected"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_exit_code_2(
    argv: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.replace("$tmp", str(tmp_path)) for word in argv]) == EXIT_USAGE
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.startswith("wherry-conformance: ")
    assert printed.count("\n") == 1
