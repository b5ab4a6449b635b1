"""A real open_clip model of two dimensions whose text vectors are known beforehand.

A text of one word means (0, 1), a longer one (1, 0): every weight is zero but the positions'
vectors, so what comes out depends on nothing but the place of the end-of-text token.
"""

import json
from pathlib import Path

from django.conf import settings

from retrieval.encoding.model_specs import CONFIG_NAME, WEIGHTS_NAME
from retrieval.encoding.open_clip_import import open_clip_module

WIDTH = 8
# Positions: 0 starts the text, a word of one token is 1, so its end is 2.
END_OF_ONE_WORD = 2
CONFIG = {
    "embed_dim": 2,
    "vision_cfg": {
        "image_size": 16,
        "layers": 1,
        "width": WIDTH,
        "head_width": WIDTH,
        "patch_size": 8,
    },
    "text_cfg": {"context_length": 16, "width": WIDTH, "heads": 1, "layers": 1},
}


def toy_model(name: str = "toy") -> str:
    """The spec of the model in the test session's state folder, written when it isn't there."""
    folder = Path(settings.VAR_DIR) / f"{name}-model"
    if not (folder / CONFIG_NAME).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _write_weights(folder / WEIGHTS_NAME)
        (folder / CONFIG_NAME).write_text(json.dumps({"model_cfg": CONFIG}))
    return str(folder)


def _write_weights(path: Path) -> None:
    open_clip = open_clip_module()
    import torch
    from safetensors.torch import save_file

    model = open_clip.CLIP(**CONFIG)
    weights = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
    weights["ln_final.weight"] = torch.ones(WIDTH)
    # Layer normalisation keeps these two, which sum to zero and are orthogonal, apart.
    weights["positional_embedding"][:] = torch.tensor([1.0, -1, 0, 0, 0, 0, 0, 0])
    weights["positional_embedding"][END_OF_ONE_WORD] = torch.tensor([0, 0, 1.0, -1, 0, 0, 0, 0])
    weights["text_projection"][0, 0] = 1
    weights["text_projection"][2, 1] = 1
    save_file({name: value.contiguous() for name, value in weights.items()}, path)
