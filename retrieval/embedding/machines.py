"""The machines on which workers run: whether they have a GPU, and whether they reach the model hub.

A worker finds it out at its start and every ten minutes, and stores it; pages only read that.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from django.db.models.functions import Now

from retrieval.embedding.models import WorkerMachine
from retrieval.encoding.model_specs import first_line

EVERY_SECONDS: Final = 600.0
PATIENCE: Final = 5.0
"""Seconds in which the hub has to answer."""
#: What was found counts for so long, through one turn that was missed.
_KEPT: Final = timedelta(seconds=2.5 * EVERY_SECONDS)
_GPU: Final = Path("/dev/nvidiactl")
#: Of a proxy that lets nobody through.
_REFUSED: Final = (403, 407)


@dataclass(frozen=True, slots=True)
class HubReach:
    """Whether models can be fetched from the hub, as the workers found it."""

    reached: bool
    problem: str
    """Why the hub isn't reached; empty where it is."""
    asked_at: datetime


def machine_note() -> None:
    """Find out what this machine has and reaches, and store it; takes little longer than PATIENCE
    seconds.
    """
    found = {"has_gpu": _GPU.exists(), "hub_problem": hub_problem()[:500], "seen_at": Now()}
    WorkerMachine.objects.update_or_create(name=socket.gethostname()[:200], defaults=found)
    WorkerMachine.objects.filter(seen_at__lt=Now() - _KEPT).delete()


def hub_problem() -> str:
    """Return why this machine doesn't reach the hub of models; empty where it does.

    It goes by the variables of huggingface_hub, such as HF_ENDPOINT and HF_HUB_OFFLINE, and by
    those of proxies.
    """
    answers: list[str] = []
    # A name that nobody resolves takes as long as the system likes.
    thread = threading.Thread(target=lambda: answers.append(_asked()), name="hub", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return answers[0] if answers else f"no answer in {PATIENCE:.0f} seconds"


def _asked() -> str:
    # Slow to import.
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        # By then nobody waits: the thread ends.
        late = 2 * PATIENCE
        answer = get_session().head(constants.ENDPOINT, timeout=late, follow_redirects=True)
    except Exception as error:  # whatever the client of the hub raises
        return f"{constants.ENDPOINT}: {first_line(error)}"
    if answer.status_code in _REFUSED or answer.status_code >= 500:
        return f"{constants.ENDPOINT} answers {answer.status_code}"
    return ""


def hub_reach() -> HubReach | None:
    """Return whether a worker reaches the hub; None before one has asked, or long after."""
    machines = WorkerMachine.objects.filter(seen_at__gt=Now() - _KEPT)
    found = machines.order_by("hub_problem", "-seen_at").first()
    if found is None:
        return None
    return HubReach(not found.hub_problem, found.hub_problem, found.seen_at)


def has_gpu() -> bool:
    """Whether a worker's machine has an NVIDIA GPU; before one has looked, whether this one has.

    It is seen without torch, which web processes lack.
    """
    machines = WorkerMachine.objects.filter(seen_at__gt=Now() - _KEPT)
    found = list(machines.values_list("has_gpu", flat=True))
    return any(found) if found else _GPU.exists()
