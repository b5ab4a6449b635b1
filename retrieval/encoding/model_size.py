"""How many numbers a model has learned, and how many operations an image and a text take it."""

from __future__ import annotations

import copy
import logging
from functools import cached_property
from typing import Any

from retrieval.encoding.open_clip_import import without_compiler

logger = logging.getLogger(__name__)


class ModelSize:
    """The size of an open_clip model with both sides; ``parameters`` is of both together.

    Floating-point operations (FLOPs) are counted by PyTorch when they are first read, on a copy of
    the model whose tensors have shapes but no numbers (PyTorch's device "meta"), which takes no
    memory and computes nothing. Products of matrices and convolutions count, a multiplication with
    its addition as two operations, as in OpenCLIP's tables.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        tensors = [*model.parameters(), *model.buffers()]
        self._model = copy.deepcopy(model, {id(tensor): tensor.to("meta") for tensor in tensors})
        self._tokens = tokenizer([""]).to("meta")

    @cached_property
    def image_flops(self) -> int | None:
        """Of encoding one image; None where PyTorch can't count them."""
        import torch

        size = self._model.visual.image_size
        sides = size if isinstance(size, tuple | list) else (size, size)
        return _counted(self._model.encode_image, torch.empty(1, 3, *sides, device="meta"))

    @cached_property
    def text_flops(self) -> int | None:
        """Of encoding one text; None where PyTorch can't count them."""
        return _counted(self._model.encode_text, self._tokens)

    @property
    def fields(self) -> dict[str, int | None]:
        """The size as fields of `retrieval.embedding.models.EmbeddingModel`."""
        return {
            "parameters": self.parameters,
            "image_flops": self.image_flops,
            "text_flops": self.text_flops,
        }


def _counted(encode: Any, example: Any) -> int | None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    try:
        # The counter imports the compiler, which takes two seconds, to tell it that it isn't meant.
        with without_compiler(), torch.inference_mode(), FlopCounterMode(display=False) as counter:
            encode(example)
    except Exception as error:
        # The text sides of Hugging Face's transformers need numbers.
        logger.info("The operations of %s can't be counted: %s", encode.__qualname__, error)
        return None
    return int(counter.get_total_flops())
