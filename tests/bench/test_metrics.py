"""The benchmark of scoring: all that it compares agree, also on rankings shorter than a cut-off."""

from bench.metrics import main

SMALL = ["--queries", "3", "--runs", "2", "--depth", "40", "--repeats", "1"]


def test_its_means_agree_and_its_table_names_all(capsys):
    assert main(SMALL) == 0
    report = capsys.readouterr().out
    assert "3 queries x 2 runs x 40 ranks, 2,331 judged pairs" in report
    for name in ("This application", "pytrec_eval", "ir-measures"):
        for source in ("arrays", "dictionaries"):
            assert f"| {name}, from {source} " in report
    assert "numpy" in report.splitlines()[2]
