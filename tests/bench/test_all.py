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


def test_a_section_is_measured_and_comes_into_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ranking: the lists of two ways of the application and of FAISS are really compared."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    path = tmp_path / "RESULTS.md"
    assert main(["ranking", "--quick", "--out", str(path)]) == 0
    text = read_results(path)["ranking"]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    [lists] = [line for line in lines if "bit for bit" in line]
    assert lists[0] == "2,000"
    assert float(lists[2].removesuffix(" %")) > 98
    [whole] = [line for line in lines if line[:2] == ["2,000", "100"]]
    assert "–" not in whole
    assert [line[1] for line in lines if len(line) == 6 and line[0] == "2,000"] == [
        "One species, 500 images",
        "A genus, 2,500 images",
        "The 200 images most like one",
        "6 queries at once",
        "6 queries at once",
    ]
    # Databases and matrices are gone.
    assert [one.name for one in tmp_path.iterdir()] == ["RESULTS.md"]


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
