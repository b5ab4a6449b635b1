"""Loading CLIP models by spec, and the vectors they give."""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from retrieval.encoding import encoders
from retrieval.encoding.encoders import (
    CONFIG_NAME,
    DEMO_MODEL_DIR,
    WEIGHTS_NAME,
    ModelSpecError,
    describe,
    encoder_in_use,
    load_encoder,
)
from retrieval.encoding.loading import load_open_clip
from retrieval.encoding.text import load_text_encoder
from tests.processes import wait_for

ROOT = Path(__file__).parents[2]


def images() -> list[Image.Image]:
    rng = np.random.default_rng(4)
    noise = rng.integers(0, 255, (90, 150, 3), dtype=np.uint8)
    return [Image.fromarray(noise), Image.new("L", (40, 40), 90), Image.new("RGBA", (300, 20))]


def assert_unit_rows(vectors: np.ndarray, count: int, dimension: int) -> None:
    assert vectors.shape == (count, dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_demo_model_gives_unit_vectors() -> None:
    encoder = load_encoder("demo")
    assert encoder.name == "demo"
    assert encoder.dimension == 256 == describe("demo").dimension
    assert_unit_rows(encoder.encode_images(images()), 3, 256)
    assert encoder.encode_images([]).shape == (0, 256)


def test_any_text_has_a_unit_vector() -> None:
    encoder = load_text_encoder("demo")
    texts = ["a fox", "Übergröße 🦊 " + "wordy " * 200, ""]
    vectors = np.array([encoder.encode(text) for text in texts])
    assert_unit_rows(vectors, 3, 256)
    assert len(np.unique(vectors, axis=0)) == 3


def test_a_text_ends_for_the_model_where_its_context_does() -> None:
    encoder = load_text_encoder("demo")
    assert encoder.unread("a fox in the snow") == encoder.unread("") == ""
    words = [f"word{number}" for number in range(100)]
    unread = encoder.unread(" ".join(words))
    assert 0 < len(unread.split()) < 100
    assert words[-len(unread.split()) :] == unread.split()
    read = " ".join(words[: -len(unread.split())])
    np.testing.assert_array_equal(encoder.encode(read), encoder.encode(f"{read} {unread}"))
    assert not np.array_equal(encoder.encode(read.rpartition(" ")[0]), encoder.encode(read))
    assert encoder.unread(read) == ""


def test_a_text_encoder_is_the_text_side_of_the_whole_model() -> None:
    encoder = load_text_encoder("demo")
    model, _, tokenizer = load_open_clip("demo", "cpu")
    whole = model.encode_text(tokenizer(["a fox in the snow"]), normalize=True)[0]
    np.testing.assert_allclose(encoder.encode("a fox in the snow"), whole, atol=1e-6)
    assert encoder.size.parameters == sum(one.numel() for one in model.parameters())


def test_the_text_sides_used_last_stay_loaded(tmp_path: Path) -> None:
    for name in "ab":
        shutil.copytree(DEMO_MODEL_DIR, tmp_path / name)
    first = load_text_encoder(str(tmp_path / "a"))
    load_text_encoder("demo")
    assert load_text_encoder(str(tmp_path / "a")) is first
    load_text_encoder(str(tmp_path / "b"))
    assert load_text_encoder(str(tmp_path / "a")) is first
    load_text_encoder("demo")
    load_text_encoder(str(tmp_path / "b"))
    assert load_text_encoder(str(tmp_path / "a")) is not first


def test_directory_and_file_pair_load_like_the_demo(tmp_path: Path) -> None:
    copy = tmp_path / "copied model"
    shutil.copytree(DEMO_MODEL_DIR, copy)
    expected = load_text_encoder("demo").encode("a turtle")
    for spec in (str(copy), f"{copy / CONFIG_NAME}:{copy / WEIGHTS_NAME}"):
        np.testing.assert_array_equal(load_text_encoder(spec).encode("a turtle"), expected)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("", "empty"),
        ("nonsense", "not of a known form"),
        ("No-Such-Model/openai", "knows no model"),
        ("RN50/no-such-tag", "has no pretrained tag"),
        ("/nowhere/at/all", "no directory"),
        ("/nowhere/config.json:/nowhere/weights.safetensors", "no file"),
    ],
)
def test_bad_specs_are_explained(spec: str, reason: str) -> None:
    with pytest.raises(ModelSpecError, match=reason) as caught:
        load_encoder(spec)
    assert repr(spec) in str(caught.value)
    assert "NAME/TAG" in str(caught.value)


def test_damaged_local_models_are_explained(tmp_path: Path) -> None:
    shutil.copytree(DEMO_MODEL_DIR, tmp_path / "model")
    config_path = tmp_path / "model" / CONFIG_NAME
    config = json.loads(config_path.read_text(encoding="utf-8"))
    config["model_cfg"]["embed_dim"] = 128
    config_path.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ModelSpecError, match="could not be loaded"):
        load_encoder(str(tmp_path / "model"))
    config["model_cfg"]["text_cfg"]["tokenizer_kwargs"]["bpe_path"] = "missing.gz"
    config_path.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ModelSpecError, match="no merges file"):
        load_encoder(str(tmp_path / "model"))
    config_path.write_text("{}", encoding="utf-8")
    with pytest.raises(ModelSpecError, match="lacks embed_dim"):
        load_encoder(str(tmp_path / "model"))
    config_path.write_text("not json", encoding="utf-8")
    with pytest.raises(ModelSpecError, match="is not JSON"):
        load_encoder(str(tmp_path / "model"))


def test_a_failed_download_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    import open_clip.factory

    def refuse(*_arguments: object, **_options: object) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(open_clip.pretrained, "download_pretrained", refuse)
    with pytest.raises(ModelSpecError, match="no route to host"):
        load_encoder("RN50/openai")


def test_the_image_side_is_released_after_its_last_use(tiny_model, monkeypatch):
    monkeypatch.setattr(encoders, "RELEASE_SECONDS", 0.1)
    with encoder_in_use(tiny_model) as encoder:
        with encoder_in_use(tiny_model) as again:
            assert again is encoder
        assert encoder.encode_images(images()).shape[0] == 3
    held = weakref.ref(encoder)
    del encoder, again
    assert wait_for(lambda: gc.collect() >= 0 and held() is None, what="the model to be released")


def test_a_compiled_image_side_gives_the_same_vectors(
    tiny_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoders, "_encoders", {})
    encoder = load_encoder(tiny_model)
    plain = encoder.encode_images(images())
    encoder.images.compile("eager")
    np.testing.assert_allclose(encoder.encode_images(images()), plain, atol=1e-5)
    # Of another size of batch.
    np.testing.assert_allclose(encoder.encode_images(images()[:1]), plain[:1], atol=1e-5)


LEFT_ALONE = """
import sys, retrieval.encoding.encoders, retrieval.encoding.text
from retrieval.encoding.model_specs import describe
from retrieval.encoding.open_clip_import import open_clip_module
describe("ViT-B-32/openai")
assert not {"torch", "open_clip"} & set(sys.modules)
assert open_clip_module().list_models()
assert "torch._dynamo" not in sys.modules
"""


def test_a_web_process_has_no_torch_and_a_worker_no_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEFT_ALONE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
