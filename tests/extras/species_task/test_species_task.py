"""The species task: texts, answers, figures, its page."""

from __future__ import annotations

import csv
import io
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from annotator.backup.contents import folders, named_files
from core.errors import Invalid
from core.jobs.models import Job
from extras.species_task.measures import (
    average_over_sets,
    bin_of,
    half_interval,
    mcnemar,
    true_rank,
)
from extras.species_task.models import SpeciesRun
from extras.species_task.services import answers, species_run_begin, species_texts
from retrieval.corpus.models import Image, ImageWithdrawal, Species
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import EmbeddingModel, TextVector
from retrieval.importing.records import SpeciesRecord
from retrieval.importing.species import species_upsert
from tests.conftest import client_of, person
from tests.labeling.conftest import run_jobs
from tests.retrieval.making import embed_rows, image_row

pytestmark = pytest.mark.django_db

EAST, NORTH, UP = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
TOAD, FROG, NEWT = "Bufo bufo", "Rana temporaria", "Triturus cristatus"


@pytest.fixture
def model(var_dir: Path) -> EmbeddingModel:
    """Toads lie east, frogs north, newts up; toad and frog are taken for each other."""
    model = embedding_model_get_or_create(name="toy", dimension=3)
    species = species_upsert(
        records=[
            SpeciesRecord(TOAD, genus="Bufo", lookalike_group="t", names=(("en", "Toad"),)),
            SpeciesRecord(FROG, kingdom="Animalia", genus="Rana", specific_epithet="temporaria",
                          lookalike_group="t", names=(("en", "Frog"), ("de", "Grasfrosch"))),
            SpeciesRecord(NEWT, genus="Triturus"),
        ]
    )  # fmt: skip
    rows = [(TOAD, EAST), (TOAD, NORTH), (FROG, NORTH), (FROG, UP), (NEWT, UP), (NEWT, EAST)]
    vectors = {}
    for number, (name, vector) in enumerate(rows, start=1):
        dataset = "one" if number < 4 else "two"
        vectors[image_row(number, species[name], dataset=dataset).pk] = vector
    embed_rows(model, vectors | {image_row(7).pk: UP})
    return model


def texts(model: EmbeddingModel, **vectors: list[float]) -> None:
    """Store the vectors of prompts, as the encoder does."""
    for name, vector in vectors.items():
        text = f"a photo of {name.replace('_', ' ')}."
        TextVector.objects.create(
            model=model, text=text, digest=sha256(text.encode()).digest(), vector=vector,
            asked_at=timezone.now(),
        )  # fmt: skip


def computed(model: EmbeddingModel, **chosen: Any) -> SpeciesRun:
    run = species_run_begin(model=model, **{"scope": "all", "naming": "sci", **chosen})
    run_jobs()
    run.refresh_from_db()
    return run


def test_each_image_is_named_by_the_nearest_text(model: EmbeddingModel) -> None:
    texts(model, Bufo_bufo=EAST, Rana_temporaria=NORTH, Triturus_cristatus=UP)
    run = computed(model)
    ids, correct = answers(run)
    assert ids.tolist() == [1, 2, 3, 4, 5, 6]
    assert correct.tolist() == [True, False, True, False, True, False]
    assert (run.species, run.images, run.correct, run.left_out) == (3, 6, 3, 0)
    assert run.sets == [["one", 2, 3, 2, 3], ["two", 2, 3, 1, 3]]


def test_within_the_group_alone(model: EmbeddingModel, reviewer: Any) -> None:
    texts(model, Bufo_bufo=EAST, Rana_temporaria=NORTH, Triturus_cristatus=UP)
    ImageWithdrawal.objects.create(image_id=1, withdrawn_by=reviewer, withdrawn_at=timezone.now())
    run = computed(model, scope="group")
    # Image 4 lies up: toad and frog are as near, and the first is named. Newts have no group.
    ids, correct = answers(run)
    assert ids.tolist() == [2, 3, 4]
    assert correct.tolist() == [False, True, False]
    assert (run.images, run.correct, run.left_out) == (3, 1, 2)


def test_prompts_hold_the_chosen_names(model: EmbeddingModel) -> None:
    def prompts(**chosen: Any) -> set[str]:
        run = SpeciesRun(embedding_model=model, scope="all", **{"naming": "sci", **chosen})
        return set(species_texts(run).values())

    assert prompts() == {f"a photo of {name}." for name in (TOAD, FROG, NEWT)}
    assert prompts(naming="com") == {"a photo of Toad.", "a photo of Frog."}
    assert prompts(naming="com", language="de", prompt="Foto: {}") == {"Foto: Grasfrosch"}
    assert "a photo of Animalia Rana temporaria." in prompts(naming="taxon")
    assert prompts(naming="sci_com", language="de") == {
        "a photo of Rana temporaria with common name Grasfrosch."
    }
    for prompt in ("a photo", "{} {}", "{}" * 101):
        with pytest.raises(Invalid):
            species_run_begin(model=model, scope="all", naming="sci", prompt=prompt)


def test_images_without_a_name_are_counted(model: EmbeddingModel) -> None:
    texts(model, Toad=EAST, Frog=NORTH)
    run = computed(model, naming="com")
    assert (run.species, run.images, run.left_out) == (2, 4, 2)
    again = computed(model, naming="com")
    assert again.pk == run.pk
    assert Job.objects.filter(kind="species_task").count() == 2
    Species.objects.update(lookalike_group="")
    failed = computed(model, naming="com", scope="group")
    assert failed.job is not None
    assert (failed.job.state, failed.done) == ("failed", False)


def test_figures() -> None:
    assert half_interval(50, 100) == pytest.approx(0.098)
    assert half_interval(100, 100) == 0
    # Weighted by species: (10 × 0.5 + 30 × 0.9) / 40.
    assert average_over_sets([(10, 100, 50), (30, 10, 9)]) == pytest.approx(0.8)
    ids = np.arange(20)
    one = (ids, ids < 12)
    other = (ids[2:], ids[2:] < 5)
    # Of images 2 to 19 the first alone is right on 5 to 11, the second alone on none: 2 × 2⁻⁷.
    assert mcnemar(one, other) == pytest.approx(2 / 2**7)
    assert mcnemar(one, one) is None
    images, texts = np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)[[2, 0, 0]]
    allowed = np.array([[1, 1, 1], [1, 1, 1], [0, 1, 1]], bool)
    truth = np.array([2, 2, 2])
    # Of the first image texts 1 and 2 are as near, of the second all, of the third text 0.
    assert true_rank(images, texts, truth, None).tolist() == [1, 2, 2]
    assert true_rank(images, texts, truth, allowed).tolist() == [1, 2, 1]
    assert true_rank(images, texts, np.array([1, 0, 0]), None).tolist() == [0, 0, 0]
    bins = [bin_of(n) for n in (0, 1, 2, 4, 5, 99, 100, 1999, 10**8)]
    assert bins == ["0", "1", "2–4", "2–4", "5–9", "50–99", "100–199", "1,000–1,999",
                    "5,000,000 or more"]  # fmt: skip


def test_the_tab_compares_runs(
    model: EmbeddingModel, clients: dict[str, Any], settings: Any
) -> None:
    texts(model, Bufo_bufo=EAST, Rana_temporaria=NORTH, Triturus_cristatus=UP)
    texts(model, Toad=NORTH, Frog=EAST)
    researcher = client_of(person("rosa", "researcher"))
    for client, status in ((clients["annotator"], 403), (researcher, 200)):
        assert client.get("/leaderboard/species/").status_code == status
        assert client.get("/leaderboard/species.csv").status_code == status
    form = {"model": "toy", "scope": "all", "naming": "sci", "language": "en", "prompt": "{}"}
    assert clients["reviewer"].post("/leaderboard/species/", form).status_code == 403
    page = clients["admin"].post("/leaderboard/species/", form | {"prompt": "x"})
    assert "Write {} once" in page.content.decode()
    form["prompt"] = "a photo of {}."
    for naming in ("sci", "com"):
        answer = clients["admin"].post("/leaderboard/species/", form | {"naming": naming})
        assert answer["Location"] == "/leaderboard/species/"
    run_jobs()
    page = researcher.get("/leaderboard/species/").content.decode()
    assert "50.0 ± 40.0" in page
    assert ">0.0 ± 0.0<" not in page.partition("Vernacular")[0]
    assert "New run" not in page
    assert 'aria-current="page">Leaderboard</a>' in page
    # Both named images 1 to 4: the first alone is right on 1 and 3, the second on 2.
    assert ">1.000</td>" in page
    text = researcher.get("/leaderboard/species.csv").content.decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["set"], row["naming"], row["correct"]) for row in rows] == [
        ("one", "sci", "2"), ("two", "sci", "1"), ("one", "com", "1"), ("two", "com", "0"),
    ]  # fmt: skip
    assert Image.objects.count() == 7


def test_a_run_is_shown_by_taxon_and_by_training_images(
    model: EmbeddingModel, clients: dict[str, Any], tmp_path: Path, capsys: Any
) -> None:
    names = [f"Sylvia nova{letter}" for letter in "abcdefg"]
    species_upsert(
        records=[SpeciesRecord(name, genus="Sylvia", iconic_group="Birds") for name in names]
    )
    embed_rows(
        model,
        {
            image_row(20 + number, Species.objects.get(scientific_name=name)).pk: UP
            for number, name in enumerate(names)
        },
    )
    texts(model, Bufo_bufo=EAST, Rana_temporaria=NORTH, Triturus_cristatus=[0, 0.6, 0.8])
    # To what lies up all birds are as near, the first of them first, and then the newt.
    texts(model, **{name: [0, n / 20, 1.0] for n, name in enumerate(names)})
    Species.objects.filter(scientific_name__in=[TOAD, FROG]).update(class_name="Amphibia")
    table = tmp_path / "trained.csv"
    table.write_text(f"scientific_name,images\n{TOAD},30\n{FROG},45\nUrsus arctos,7\n{NEWT},0\n")
    call_command("evaluate_species", "toy", training_images=table)
    assert "3 of its species are in the corpus." in capsys.readouterr().out
    run_jobs()
    run = SpeciesRun.objects.get()
    # Right: images 1 and 3, and the first bird's; by one of five also image 6, to which all but
    # toads are as near, and the other four of the first five birds'.
    assert (run.images, run.correct, run.correct_5) == (13, 3, 8)

    page = client_of(person("rosa", "researcher")).get(
        f"/leaderboard/species/{run.pk}/?by=class_name"
    )
    text = " ".join(page.content.decode().split())
    for part in (">Amphibia<", ">Not known<", ">20–49<", "data-vega"):
        assert part in text
    rows = clients["admin"].get(f"/leaderboard/species/{run.pk}.json").json()
    found = {(row["by"], row["name"]): row for row in rows}
    birds = found["iconic_group", "Birds"]
    assert (birds["species"], birds["images"], birds["correct"], birds["correct_5"]) == (7, 7, 1, 5)
    assert (birds["accuracy"], birds["training_images"]) == (pytest.approx(1 / 7), None)
    trained = [row for row in rows if row["by"] == "training_images"]
    assert [(row["name"], row["species"], row["training_images"]) for row in trained] == [
        ("0", 1, 0), ("20–49", 2, 37.5),
    ]  # fmt: skip
    assert found["class_name", "Amphibia"]["species_mean"] == 0.5
    assert sum(row["images"] for row in rows if row["by"] == "scientific_name") == 13
    text = clients["admin"].get(f"/leaderboard/species/{run.pk}.csv").content.decode()
    assert len(list(csv.DictReader(io.StringIO(text)))) == len(rows)

    # Once more without a table it has the same; one that is wrong is refused by line.
    assert computed(model).training_images == {TOAD: 30, FROG: 45, NEWT: 0}
    table.write_text(f"scientific_name,images\n{TOAD},many\n{FROG},1\n{FROG},2\n")
    with pytest.raises(CommandError, match=r"(?s)line 2, images.*line 4, images"):
        call_command("evaluate_species", "toy", training_images=table)


def test_a_run_of_the_version_before_has_no_page(
    model: EmbeddingModel, clients: dict[str, Any]
) -> None:
    texts(model, Bufo_bufo=EAST, Rana_temporaria=NORTH, Triturus_cristatus=UP)
    run = computed(model)
    SpeciesRun.objects.update(correct_5=None, sets=[row[:4] for row in run.sets])
    assert clients["admin"].get(f"/leaderboard/species/{run.pk}/").status_code == 404
    page = clients["admin"].get("/leaderboard/species/").content.decode()
    assert "50.0 ± 40.0" in page
    assert f"/leaderboard/species/{run.pk}/" not in page
    assert ",3,2,0.666667," in clients["admin"].get("/leaderboard/species.csv").content.decode()


def test_the_command_begins_a_run(model: EmbeddingModel, capsys: Any) -> None:
    call_command("evaluate_species", "toy", scope="group")
    assert "Species task: toy, scientific name" in capsys.readouterr().out
    for name, options in (("none", {}), ("toy", {"prompt": "x"})):
        with pytest.raises(CommandError):
            call_command("evaluate_species", name, **options)


def test_a_backup_takes_the_answers_of_runs_that_are_done(
    model: EmbeddingModel, var_dir: Path
) -> None:
    about = {"embedding_model": model, "scope": "all"}
    done = SpeciesRun.objects.create(**about, naming="sci", images=1)
    SpeciesRun.objects.create(**about, naming="com")
    assert "species_runs" in folders()
    named = [one.path for one in named_files(images=False)]
    assert [path for path in named if path.parent.name == "species_runs"] == [done.path]
