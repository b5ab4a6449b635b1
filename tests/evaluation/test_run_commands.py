"""The command that submits runs."""

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from core.jobs.services import job_slice_run
from evaluation.runs.models import Run, Submission
from tests.evaluation.runs import trec
from tests.releases.toy_release import toy_release


@pytest.fixture
def release(images, var_dir):
    return toy_release()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "run.txt"
    path.write_bytes(trec({1: [2, 1, 4], 2: [2]}))
    return str(path)


def said(*arguments: str) -> str:
    output = io.StringIO()
    call_command(*arguments, stdout=output)
    return output.getvalue()


def test_a_run_is_submitted_and_published_by_command(release, file, researcher, settings):
    # The operator isn't limited, but the owner's submissions count.
    settings.TEST_SUBMISSIONS_PER_DAY = 0
    options = ["--parameters", "86", "--weights", "open", "--owner", "rosa", "--publish"]
    shown = said("submit_run", "Toy v1", file, "--name", "CLIP", *options)
    run = Run.objects.get()
    assert f"Run {run.pk}, “CLIP”: 4 rows for 1 val and 1 test queries of Toy v1" in shown
    assert (run.owner, run.parameters, run.open_weights) == (researcher, 86, True)
    assert Submission.objects.get().person == researcher
    job_slice_run(job_id=run.job_id)
    run.refresh_from_db()
    assert run.published


def test_without_an_owner_it_is_the_operators_on_the_newest_version(release, file):
    newer = toy_release(version=2)
    for name in ("Toy", str(release.pk)):
        said("submit_run", name, file, "--name", "CLIP")
    assert [(run.release, run.owner) for run in Run.objects.order_by("pk")] == [
        (newer, None),
        (release, None),
    ]
    assert not Submission.objects.exists()


def test_what_is_wrong_is_reported(release, file):
    for arguments, expected in (
        (["toy", file], 'There is no release "toy". Releases are: Toy v1.'),
        (["Toy v1", file, "--owner", "nobody"], "There is no user 'nobody'."),
        (["Toy v1", file, "--split", "val"], "run.txt, line 4, query_id: query 2 is of the"),
        (["Toy v1", file, "--cost", "-1"], "--cost: Write a number from 0 to 1,000,000,000."),
        (["Toy v1", "/nowhere/run.txt"], "Can't read or store the run"),
    ):
        with pytest.raises(CommandError) as caught:
            said("submit_run", *arguments, "--name", "CLIP")
        assert expected in str(caught.value)
    assert not Run.objects.exists()
