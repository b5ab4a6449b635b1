"""Names of models: what they may name of this machine, and what is known without a connection."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from retrieval.encoding.loading import load_open_clip
from retrieval.encoding.model_specs import (
    CONFIG_NAME,
    DEMO_MODEL_DIR,
    WEIGHTS_NAME,
    ModelSpecError,
    described_here,
    parsed,
    require_among_models,
)

pytestmark = pytest.mark.pure


@pytest.fixture
def models(settings: Any, tmp_path: Path) -> Path:
    """The folder of models, with the demo's in it, and beside it `outside` with the same."""
    settings.MODELS_DIR = tmp_path / "models"
    for folder in (settings.MODELS_DIR / "ours", tmp_path / "outside" / "theirs"):
        shutil.copytree(DEMO_MODEL_DIR, folder)
    return Path(settings.MODELS_DIR)


def refusal(spec: str) -> str:
    """Why a spec is refused, without the spec."""
    with pytest.raises(ModelSpecError) as refused:
        require_among_models(spec)
    return refused.value.reason


def pair(folder: Path) -> str:
    return f"{folder / CONFIG_NAME}:{folder / WEIGHTS_NAME}"


def test_what_lies_in_the_folder_of_models_may_be_named(models: Path) -> None:
    ours = models / "ours"
    (models / "linked").symlink_to(ours)
    for spec in (
        *("demo", "ViT-B-32/openai", "hf-hub:imageomics/bioclip-2"),
        *(str(ours), f"local-dir:{ours}", pair(ours), str(models / "linked")),
        *(str(models / "none"), f"{models}/x:{models}/y"),
    ):
        require_among_models(spec)


def test_what_leads_out_of_it_is_refused_in_the_same_words_whatever_is_there(models: Path) -> None:
    outside = models.parent / "outside"
    there = outside / "theirs"
    closed = outside / "closed"
    closed.mkdir(mode=0)
    (models / "out").symlink_to(there)
    (models / "nowhere").symlink_to(outside / "nothing")
    (models / "ours" / "loop").symlink_to(models / "ours" / "loop")
    (models / "mixed").mkdir()
    (models / "mixed" / CONFIG_NAME).symlink_to(there / CONFIG_NAME)
    (models / "mixed" / WEIGHTS_NAME).touch()
    ours = models / "ours" / CONFIG_NAME
    reasons = {
        refusal(spec)
        for spec in (
            *("/etc/passwd:/x", "/x:/etc/passwd", "/nowhere", "/etc", "/root/.ssh", "local-dir:/"),
            *("local-dir:", "local-dir:demo/model", "./demo", "..", ".", "etc/x:y", f"{ours}:"),
            *(str(there), pair(there), f"{outside}/none", f"{closed}/a", f"/{'a' * 290}"),
            *(f"{models}/../outside/theirs", f"{models}/ours/../../outside/none"),
            *(f"{models}/out", f"{models}/nowhere", f"{models}/mixed", pair(models / "mixed")),
            *(f"{ours}:{there / WEIGHTS_NAME}", f"{ours}:{outside / 'none'}"),
            *(f"{models}/out/{CONFIG_NAME}:{ours}", f"{models}-of-others"),
        )
    }
    assert reasons == {f"only admins may name files of the server outside {models}"}


@pytest.mark.parametrize(
    "spec",
    [
        *("hf-hub:..", "hf-hub:../..", "hf-hub:../x", "hf-hub:x/..", "hf-hub:/etc/passwd"),
        *("hf-hub:./x", "hf-hub:x/../y", "hf-hub:x", "../../etc/x", "x/y/z", "/x", "a" * 300),
        *("a" * 290 + "/openai", "x/../../passwd"),
    ],
)
def test_a_name_is_no_way_to_a_file(spec: str, models: Path) -> None:
    """Neither is what open_clip or the hub is asked for by name."""
    with pytest.raises(ModelSpecError):
        require_among_models(spec)
    with pytest.raises(ModelSpecError):
        described_here(spec)


def test_what_cannot_be_read_is_said_so(models: Path) -> None:
    (models / "ours" / CONFIG_NAME).unlink()
    (models / "ours" / CONFIG_NAME).symlink_to("/proc/self/mem")
    for spec, reason in (
        (str(models / "ours"), "can't be read"),
        (f"/{'a' * 290}", "there is no directory"),
        (f"/{'a' * 290}:/x", "there is no file"),
    ):
        with pytest.raises(ModelSpecError, match=reason):
            described_here(spec)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub is a folder of repositories here, from which everything is fetched already."""

    def fetched(name: str = "", filename: str = "", repo_id: str = "", **_: Any) -> str:
        return str(tmp_path / (name or repo_id) / filename)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", fetched)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    shutil.copytree(DEMO_MODEL_DIR, tmp_path / "owner" / "name")
    monkeypatch.setattr(
        "retrieval.encoding.loading._hub_weights",
        lambda source: str(tmp_path / source.hub / WEIGHTS_NAME),
    )
    return tmp_path


def told(hub: Path, **text: Any) -> str:
    """Why a model of the hub with this configuration of its text side can't be loaded."""
    config = json.loads((DEMO_MODEL_DIR / CONFIG_NAME).read_text())
    config["model_cfg"]["text_cfg"] |= text
    (hub / "owner" / "name" / CONFIG_NAME).write_text(json.dumps(config))
    with pytest.raises(ModelSpecError) as refused:
        load_open_clip("hf-hub:owner/name", "cpu")
    return refused.value.reason


def test_a_configuration_of_the_hub_learns_of_no_file_here(
    hub: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VAR_DIR = hub / "var"
    (hub / "var" / "tokenizers").mkdir(parents=True)
    monkeypatch.chdir(hub)
    for there, missing in (
        ("/etc/passwd", "/etc/nothing"),
        ("../owner/name", "../owner/nobody"),
        ("./owner", "./nobody"),
        (f"local-dir:{hub}", "local-dir:/nowhere"),
        ("~", "~/nothing"),
    ):
        for member in ("hf_tokenizer_name", "hf_model_name"):
            one, other = told(hub, **{member: there}), told(hub, **{member: missing})
            assert one.replace(there, "") == other.replace(missing, "")
            assert "names files outside it" in one
        merges = told(hub, tokenizer_kwargs={"bpe_path": there})
        assert merges.replace(there, "") == one.replace(there, "")
    # Which libraries look for in the working directory first.
    one = told(hub, hf_tokenizer_name="owner/name")
    other = told(hub, hf_tokenizer_name="owner/nobody")
    assert one.replace("owner/name", "") == other.replace("owner/nobody", "")
    assert "could not be had" in one


def test_what_is_known_of_a_model_of_the_hub_without_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: Any) -> None:
        raise AssertionError("somebody outside is asked")

    monkeypatch.setattr(socket, "getaddrinfo", connect)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    spec = "hf-hub:owner/name"
    assert parsed(spec).name == spec
    assert described_here(spec) is None
    repository = tmp_path / "models--owner--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    (repository / "snapshots" / "abc").mkdir(parents=True)
    shutil.copy(DEMO_MODEL_DIR / CONFIG_NAME, repository / "snapshots" / "abc")
    about = described_here(spec)
    assert about is not None
    assert (about.name, about.dimension) == (spec, 256)
