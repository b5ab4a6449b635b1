"""`make bench`: sections of one file, run apart, kept when others are run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.__main__ import HEADING, SECTIONS, main, read_results, results_text


def test_sections_come_out_as_they_went_in_and_in_their_order() -> None:
    sections = {"ranking": "## Ranking\n\n| a |", "loading": "## Loading\n\nfast"}
    text = results_text(sections)
    assert text.startswith(HEADING)
    assert text.index("## Loading") < text.index("## Ranking")


def test_a_file_is_read_again_as_it_was_written(tmp_path: Path) -> None:
    sections = {"loading": "## Loading\n\nfast", "pages": "## Pages\n\n| a | b |\n|---|---|"}
    path = tmp_path / "RESULTS.md"
    assert read_results(path) == {}
    path.write_text(results_text(sections))
    assert read_results(path) == sections


def test_each_section_is_a_module() -> None:
    folder = Path(__file__).resolve().parents[2] / "bench"
    assert [name for name in SECTIONS if not (folder / f"{name}.py").is_file()] == []


def test_an_unknown_section_and_quick_figures_in_the_results_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments, says in ((["nothing"], "no section nothing"), (["--quick"], "needs --out")):
        with pytest.raises(SystemExit):
            main(arguments)
        assert says in capsys.readouterr().err


def test_one_that_fails_says_so_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "RESULTS.md"
    path.write_text(results_text({"loading": "## Loading\n\nfast"}))
    # No such size, which the benchmark's own options refuse.
    monkeypatch.setitem(SECTIONS, "ranking", ("--sizes", "many"))  # type: ignore[misc]
    assert main(["ranking", "--quick", "--out", str(path)]) == 1
    sections = read_results(path)
    assert sections["loading"] == "## Loading\n\nfast"
    assert sections["ranking"].startswith("## Ranking\n\n**It failed** on ")
    assert sections["ranking"].endswith("with exit status 2.")
