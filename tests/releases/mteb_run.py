"""`python -m tests.releases.mteb_run FOLDER MODEL OUT`: run the task in a release's folder mteb/
with an open_clip model, and write into the folder OUT the rankings and, as scores.json, the scores.
"""

import json
import sys
from pathlib import Path
from typing import Any

import mteb
import torch
from mteb.models.model_meta import ModelMeta

from retrieval.encoding.loading import load_open_clip


class OpenClip:
    """An open_clip model as mteb calls it."""

    def __init__(self, model_name: str, revision: str | None = None, **options: Any) -> None:
        self.model, self.preprocess, self.tokenizer = load_open_clip(model_name, "cpu")
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": "toy/clip", "modalities": ["image", "text"]}
        )

    def encode(self, inputs: Any, **options: Any) -> torch.Tensor:
        return torch.cat([self._encoded(batch) for batch in inputs])

    def _encoded(self, batch: dict[str, Any]) -> torch.Tensor:
        if "image" in batch:
            images = torch.stack([self.preprocess(image) for image in batch["image"]])
            return self.model.encode_image(images, normalize=True)
        return self.model.encode_text(self.tokenizer(batch["text"]), normalize=True)

    def similarity(self, embeddings1: torch.Tensor, embeddings2: torch.Tensor) -> torch.Tensor:
        return embeddings1 @ embeddings2.T

    similarity_pairwise = similarity


def main(folder: str, model: str, out: Path) -> None:
    sys.path.insert(0, folder)
    from task import ReleaseRetrieval

    result = mteb.evaluate(
        OpenClip(model), ReleaseRetrieval(), cache=None, prediction_folder=out, co2_tracker=False
    )
    scores = {split: one[0] for split, one in result.task_results[0].scores.items()}
    (out / "scores.json").write_text(json.dumps(scores))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
