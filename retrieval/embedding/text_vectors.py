"""Vectors of texts: each text is encoded once under a model, and its vector is stored.

If settings.TEXT_PROCESS is set, one process per database encodes (`manage.py encode_texts`, which
runs `serve_texts`). Others store a request, a row without a vector, wake that process by NOTIFY,
and wait until the row has its vector. Otherwise each process encodes the texts that it needs.
"""

from __future__ import annotations

import hashlib
import logging
import select
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

import numpy as np
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from core.errors import Unavailable
from core.locks import lock_key, session_lock
from retrieval.embedding.counts import has_embeddings
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel, TextVector
from retrieval.encoding.model_specs import ModelSpecError
from retrieval.encoding.text import load_text_encoder
from retrieval.encoding.unit_rows import half_rounded

PATIENCE: Final = 600.0
"""Seconds that a job waits for a text's vector: a model of some gigabytes may be loaded first."""
_SHORTEST_PAUSE: Final = 0.005
_PAUSE_DIVISOR: Final = 20
"""The pause between two looks for a vector is this part of the time waited so far."""
_AGAIN_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 15.0
_CHANNEL: Final = "texts_wanted"

_REQUEST: Final = f"""
INSERT INTO retrieval_textvector AS known
    (model_id, text, digest, error, asked_at, created_at)
SELECT %s, text, sha256(convert_to(text, 'UTF8')), '', now(), now()
FROM unnest(%s) text ORDER BY 3
ON CONFLICT (model_id, digest) DO UPDATE SET error = '', asked_at = now()
WHERE known.vector IS NULL;
NOTIFY {_CHANNEL}
"""

logger = logging.getLogger(__name__)


class TextsUnavailable(Unavailable, OperationalError):
    """A text was not encoded in time; jobs retry later, as after an outage of the database."""


def text_vector(
    model: EmbeddingModel,
    text: str,
    *,
    patience: float = PATIENCE,
    has_left: Callable[[], bool] = lambda: False,
) -> list[float]:
    """Return the text's vector; see `text_vectors`."""
    return text_vectors(model, [text], patience=patience, has_left=has_left)[0]


def text_vectors(
    model: EmbeddingModel,
    texts: Sequence[str],
    *,
    patience: float = PATIENCE,
    has_left: Callable[[], bool] = lambda: False,
) -> list[list[float]]:
    """Return for each text its vector (d,) under the model, unit length, rounded to half precision.

    All users of the database get the same bits. Raises ModelSpecError for a model that can't be
    loaded, and TextsUnavailable after `patience` seconds, or once `has_left()` is true.
    """
    vectors = _stored_vectors(model, texts)
    missing = list(dict.fromkeys(text for text in texts if text not in vectors))
    if missing and not settings.TEXT_PROCESS:
        vectors |= _encode_here(model, missing)
    elif missing and connection.in_atomic_block:
        # Others see a transaction's request only after its end, so a thread's connection sends it.
        with ThreadPoolExecutor(1) as thread:
            answer = thread.submit(_request_vectors, model, missing, patience, has_left)
            thread.submit(lambda: connection.close())
            vectors |= answer.result()
    elif missing:
        vectors |= _request_vectors(model, missing, patience, has_left)
    return [vectors[text] for text in texts]


def _rows(model: EmbeddingModel, texts: Collection[str]) -> QuerySet[TextVector]:
    return TextVector.objects.filter(model=model, digest__in=[_digest(text) for text in texts])


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _stored_vectors(model: EmbeddingModel, texts: Collection[str]) -> dict[str, list[float]]:
    rows = _rows(model, texts).values_list("text", "vector")
    # PostgreSQL writes a half with the fewest digits that identify it.
    return {
        text: np.array(vector, np.float16).astype(float).tolist()
        for text, vector in rows
        if vector is not None
    }


def _encode_here(model: EmbeddingModel, texts: Sequence[str]) -> dict[str, list[float]]:
    encoded = {text: _encode(model, text) for text in texts}
    TextVector.objects.bulk_create(
        [
            TextVector(
                model=model, text=text, digest=_digest(text), vector=vector, unread=unread,
                asked_at=Now(),
            )
            for text, (vector, unread) in encoded.items()
        ],
        update_conflicts=True,
        unique_fields=["model", "digest"],
        update_fields=["vector", "unread", "error"],
    )  # fmt: skip
    return {text: vector for text, (vector, _) in encoded.items()}


def unread_texts(model: EmbeddingModel, texts: Collection[str]) -> dict[str, str]:
    """Return, of each text with a vector that the model doesn't read whole, the unread end."""
    rows = _rows(model, texts).exclude(unread="")
    return dict(rows.values_list("text", "unread"))


def _encode(model: EmbeddingModel, text: str) -> tuple[list[float], str]:
    """A text's vector, and the end that isn't in it."""
    encoder = load_text_encoder(model.name)
    if model.parameters is None or model.image_flops is None:
        model.parameters, model.image_flops = encoder.size.parameters, encoder.size.image_flops
        # Somebody may have removed the model meanwhile.
        EmbeddingModel.objects.filter(pk=model.pk).update(**encoder.size.fields)
    return half_rounded(encoder.encode(text)), encoder.unread(text)


def _request_vectors(
    model: EmbeddingModel, texts: Sequence[str], patience: float, has_left: Callable[[], bool]
) -> dict[str, list[float]]:
    """Request the vectors from the process that encodes texts, and wait for them.

    It looks for them rather than listens: behind a PgBouncer in transaction mode there is no
    session to be notified, and the file broker gives a result of Celery later than this.
    """
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(_REQUEST, [model.pk, list(texts)])
    # One statement tells what waits and what failed: others may ask again for what failed.
    failures = _rows(model, texts).filter(vector=None).values_list("error", flat=True)
    while "" in (errors := list(failures.all())):
        waited = time.monotonic() - began
        if waited > patience or has_left():
            raise TextsUnavailable(
                "The text could not be encoded in time: the model is being loaded, or “python "
                "manage.py encode_texts”, which “serve” runs, is not running. Try again soon."
            )
        time.sleep(max(_SHORTEST_PAUSE, waited / _PAUSE_DIVISOR))
    if errors:
        raise ModelSpecError(model.name, errors[0])
    vectors = _stored_vectors(model, texts)
    if len(vectors) < len(texts):
        raise ModelSpecError(model.name, "it was removed")
    return vectors


def serve_texts() -> None:
    """Encode requested texts in this process, forever; starts when no other process does so.

    Loads the model in use, if it has embeddings, first and once another is chosen. Starts again
    after failures of the database.
    """
    while True:
        try:
            loaded = _load_model_in_use()
            with session_lock(lock_key("texts")):
                _serve(loaded)
        except (OperationalError, InterfaceError) as error:
            logger.warning("Texts are not encoded until the database answers: %s", error)
            connection.close()
            time.sleep(_AGAIN_SECONDS)


def _serve(loaded: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"LISTEN {_CHANNEL}")
    while True:
        while (request := _last_request()) is not None:
            _answer(request)
        loaded = _load_model_in_use(loaded)
        _wait()


def _load_model_in_use(loaded: str = "") -> str:
    """Load the model in use, unless it is the one that was loaded last; returns which is now."""
    name = model_in_use()
    if name == loaded or not has_embeddings(name):
        return loaded
    # Requests report this error.
    with suppress(ModelSpecError):
        load_text_encoder(name).encode("")
    return name


def _last_request() -> TextVector | None:
    """Return the latest request, for which the person who types waits."""
    rows = TextVector.objects.filter(vector=None, error="").select_related("model")
    return rows.order_by("-asked_at").first()


def _answer(request: TextVector) -> None:
    vector, unread, error = None, "", ""
    try:
        vector, unread = _encode(request.model, request.text)
        logger.debug("Encoded: %s", request.text)
    except ModelSpecError as failure:
        error = failure.reason
    except (RuntimeError, ValueError) as failure:
        logger.exception("A text could not be encoded by %s", request.model.name)
        error = f"a text could not be encoded ({failure})"
    TextVector.objects.filter(pk=request.pk).update(vector=vector, unread=unread, error=error)


def _wait() -> None:
    """Wait for a request, or for some seconds."""
    with connection.wrap_database_errors:
        raw = connection.connection
        if not raw.notifies:
            select.select([raw], [], [], _IDLE_SECONDS)
            raw.poll()
        raw.notifies.clear()
