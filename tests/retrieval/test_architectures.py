"""Every architecture of open_clip's pretrained models loads by name, with its tokenizer."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.encoding.encoders import describe, load_encoder
from retrieval.encoding.image_tower import ImageTower
from retrieval.encoding.loading import load_open_clip, tokenizer_folder
from retrieval.encoding.model_specs import DEMO_MODEL_DIR, WEIGHTS_NAME, ModelSpecError
from retrieval.encoding.open_clip_import import open_clip_module
from retrieval.encoding.text import load_text_encoder
from retrieval.ranking.building import pack
from retrieval.ranking.selectors import half_rounded
from tests.retrieval.making import random_vectors
from tests.retrieval.matrices import embed, images, same_as_scan

PHOTO = Image.new("RGB", (90, 60), (40, 90, 30))
#: Configurations of text sides, whose real ones are fetched; small, of the same kinds.
TEXT_SIDES: dict[str, dict[str, Any]] = {
    "roberta-base": {"model_type": "roberta"},
    "xlm-roberta-base": {"model_type": "xlm-roberta"},
    "xlm-roberta-large": {"model_type": "xlm-roberta"},
    "facebook/nllb-200-distilled-600M": {"model_type": "m2m_100"},
    "facebook/nllb-200-distilled-1.3B": {"model_type": "m2m_100"},
}
SIZES = {
    "vocab_size": 100, "hidden_size": 32, "d_model": 32, "num_hidden_layers": 1,
    "num_attention_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "intermediate_size": 32,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "pad_token_id": 1,
}  # fmt: skip

WITH_TEXT_SIDES = (
    "nllb-clip-base", "nllb-clip-base-siglip", "nllb-clip-large", "nllb-clip-large-siglip",
    "roberta-ViT-B-32", "xlm-roberta-base-ViT-B-32", "xlm-roberta-large-ViT-H-14",
)  # fmt: skip


def architectures() -> list[str]:
    return sorted({name for name, _ in open_clip_module().list_pretrained()})


def repositories(name: str) -> set[str]:
    """What its text side names of a hub."""
    text = open_clip_module().get_model_config(name)["text_cfg"]
    return {text[member] for member in ("hf_tokenizer_name", "hf_model_name") if member in text}


def give_tokenizer(repository: str) -> None:
    """Put files of a stand-in where those of a repository would be copied."""
    folder = tokenizer_folder(repository)
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    words = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "fox": 4}
    tokenizer = Tokenizer(WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>",
                "unk_token": "<unk>", "eos_token": "</s>", "sep_token": "</s>"}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    config = TEXT_SIDES.get(repository, {"model_type": "bert"}) | SIZES
    (folder / "config.json").write_text(json.dumps(config))


@pytest.fixture(autouse=True)
def no_hub(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.VAR_DIR = tmp_path / "var"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def test_each_one_gives_vectors_of_the_size_that_its_description_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without numbers, so that the largest take no memory. Of those whose configurations have the
    same members one is gone through; their towers differ in size alone."""
    open_clip_module()
    import timm.layers.weight_init
    import torch

    # Drawing first weights that have no numbers would take two thirds of the time.
    initializers = [name for name in dir(torch.nn.init) if re.fullmatch(r"[a-z]\w*_", name)]
    timm_initializers = (timm.layers.weight_init, ["_trunc_normal_"])
    for module, names in (torch.nn.init, initializers), timm_initializers:
        for name in names:
            monkeypatch.setattr(module, name, lambda tensor, *_, **__: tensor)
    kinds = set()
    with torch.device("meta"):
        for name in architectures():
            if name in WITH_TEXT_SIDES:
                continue
            for repository in repositories(name):
                give_tokenizer(repository)
            spec = f"{name}/random"
            model, preprocess, tokenizer = load_open_clip(spec, "meta")
            about = describe(spec)
            tokens = torch.empty_like(tokenizer(["a fox", "a red fox in the snow"]), device="meta")
            assert tokens.shape == (2, about.context_length), name
            tower = ImageTower(model, preprocess, "meta")
            size = (tower.height, tower.width)
            assert tower.prepare(PHOTO).shape == (*size, 3)
            assert max(size) == about.image_size, name
            config = open_clip_module().get_model_config(name)
            kind = (type(model), *config["vision_cfg"], *config["text_cfg"])
            if kind in kinds:
                continue
            kinds.add(kind)
            assert model.encode_text(tokens).shape == (2, about.dimension), name
            pixels = torch.empty(1, 3, *size, device="meta")
            assert model.encode_image(pixels).shape == (1, about.dimension), name


@pytest.mark.parametrize("name", WITH_TEXT_SIDES)
def test_those_whose_text_side_is_of_another_library(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their text sides don't work without numbers; the image side is a small one."""
    for repository in repositories(name):
        give_tokenizer(repository)
    from open_clip.factory import _MODEL_CONFIGS

    config = open_clip_module().get_model_config(name)
    vision = {"image_size": 64, "layers": 1, "width": 64, "head_width": 32, "patch_size": 32}
    monkeypatch.setitem(_MODEL_CONFIGS, name, config | {"vision_cfg": vision})
    check_vectors(f"{name}/random")
    size = load_text_encoder(f"{name}/random", device="cpu").size
    assert size.image_flops
    assert size.text_flops is None


def check_vectors(spec: str) -> None:
    found = load_encoder(spec, device="cpu").encode_images([PHOTO])[0]
    text = load_text_encoder(spec, device="cpu").encode("a fox")
    for vector in (found, text):
        assert vector.shape == (describe(spec).dimension,)
        assert np.isfinite(vector).all()
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", ["PE-Core-T-16-384", "MobileCLIP2-S0", "EVA02-B-16"])
def test_real_vectors(name: str) -> None:
    check_vectors(f"{name}/random")


def test_the_matrix_ranks_vectors_of_every_size(db: None) -> None:
    sizes = {describe(f"{name}/random").dimension for name in architectures()}
    assert {384, 1536} <= sizes
    images(range(20))
    for size in sizes:
        vectors = random_vectors(21, size)
        model = embedding_model_get_or_create(name=f"m-{size}", dimension=size)
        embed(model, range(20), vectors[:20])
        assert pack(model) == 20
        assert len(same_as_scan(model, half_rounded(vectors[20]))) == 20


def test_a_tokenizer_that_cannot_be_had_is_told_with_where_to_put_it() -> None:
    with pytest.raises(ModelSpecError) as told:
        load_open_clip("roberta-ViT-B-32/random", "cpu")
    folder = tokenizer_folder("roberta-base")
    assert f"https://huggingface.co/roberta-base into {folder}" in str(told.value)
    give_tokenizer("roberta-base")
    _, _, tokenizer = load_open_clip("roberta-ViT-B-32/random", "cpu")
    assert tokenizer(["fox"])[0, 0] == 4


@pytest.mark.parametrize("weights", ["open_clip_model.safetensors", "model.safetensors"])
def test_a_repository_of_the_hub_and_a_folder_of_it(
    weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub is a folder here; what it holds is the demo's model."""
    repository = tmp_path / "imageomics" / "bioclip-2"
    shutil.copytree(DEMO_MODEL_DIR, repository)
    (repository / WEIGHTS_NAME).rename(repository / weights)

    def fetched(name: str = "", filename: str = "", repo_id: str = "", **_: Any) -> str:
        found = tmp_path / (name or repo_id) / filename
        if not found.is_file():
            raise OSError(f"404: {filename}")
        return str(found)

    open_clip_module()
    monkeypatch.setattr("huggingface_hub.hf_hub_download", fetched)
    monkeypatch.setattr("open_clip.pretrained.hf_hub_download", fetched)
    expected = load_text_encoder("demo").encode("a turtle")
    specs = [f"local-dir:{repository}"]
    if weights == WEIGHTS_NAME:
        specs.append("hf-hub:imageomics/bioclip-2")
        assert describe(specs[1]).name == specs[1]
    for spec in specs:
        assert describe(spec).dimension == 256
        np.testing.assert_array_equal(load_text_encoder(spec).encode("a turtle"), expected)
        np.testing.assert_array_equal(
            load_encoder(spec).encode_images([PHOTO]), load_encoder("demo").encode_images([PHOTO])
        )
    for spec, reason in (
        ("hf-hub:imageomics/none", "404: open_clip_config.json"),
        ("hf-hub:bioclip", "is not OWNER/NAME"),
        ("hf-hub:../../etc/x", "is not OWNER/NAME"),
        ("local-dir:", "there is no file open_clip_config.json"),
    ):
        with pytest.raises(ModelSpecError, match=re.escape(reason)):
            describe(spec)
