"""`manage.py rerank_run RUN --depth 100 (--model NAME | --endpoint URL --api-model NAME)`."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError

from core.commands import ServiceCommand, command
from core.commands.waiting import add_wait_argument, wait_for_job
from core.ids import id_of
from core.jobs.models import Job
from evaluation.reranking.estimate import rerank_estimate
from evaluation.reranking.multimodal.answers import Prices, dollars
from evaluation.reranking.multimodal.prompt import PLACEHOLDER, TEMPLATE, checked_template
from evaluation.reranking.services import RerankChoice, rerank_begin, rerank_checked
from evaluation.reranking.setup import EndpointSetup
from evaluation.runs.models import Run
from releases.management.arguments import positive
from releases.models import Release
from releases.selectors import release_named
from retrieval.embedding.models import EmbeddingModel

ERRORS_SHOWN: Final = 20


def _amount(text: str) -> float:
    """An argument in US dollars."""
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise ArgumentTypeError(f"{text!r} is not an amount from 0")
    return amount


def _prompt(path: str) -> str:
    """The prompt in a file."""
    try:
        return checked_template(Path(path).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise ArgumentTypeError(f"{path} isn't text in UTF-8.") from None
    except (OSError, ValueError) as error:
        raise ArgumentTypeError(f"{path}: {error}") from error


class Command(ServiceCommand):
    """Make a two-stage run as a job of the workers."""

    help = (
        "Re-rank the first images of each query of RUN with another embedding model, or with a "
        "multimodal model behind an OpenAI-compatible address (its key in the environment variable "
        "MULTIMODAL_API_KEY). The same command again goes on with a run that stopped; what was "
        "answered is never paid for twice."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "run",
            help="the first stage's number; or fixed:RELEASE for the fixed lists of a release, as "
            "in “fixed:INQUIRE v2”",
        )
        parser.add_argument(
            "--depth", type=positive, default=100, help="images of each query (default: 100)"
        )
        second = parser.add_mutually_exclusive_group(required=True)
        second.add_argument("--model", help="an embedding model of the corpus")
        second.add_argument(
            "--endpoint", metavar="URL", help="the address before /chat/completions"
        )
        parser.add_argument("--api-model", default="", help="a model, as that server names it")
        parser.add_argument(
            "--prompt",
            metavar="FILE",
            type=_prompt,
            help=f"the question, with {PLACEHOLDER} for the query's text (default: the paper's)",
        )
        parser.add_argument("--name", default="", help="the name on the leaderboard")
        parser.add_argument(
            "--price-in", type=_amount, help="US dollars for a million tokens of input"
        )
        parser.add_argument("--price-out", type=_amount, help="and of output")
        parser.add_argument("--max-cost", type=_amount, help="stop before more dollars are spent")
        parser.add_argument(
            "--rpm", type=positive, default=0, help="requests a minute (default: no limit)"
        )
        parser.add_argument(
            "--estimate", action="store_true", help="print what it takes, and begin nothing"
        )
        add_wait_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        choice = rerank_checked(_choice(options))
        self._print_estimate(choice)
        if options["estimate"]:
            return
        run = rerank_begin(choice=choice)
        job = run.job
        assert job is not None
        self.stdout.write(f"Run {run.pk}, job {job.pk}: {run.name}")
        if not options["wait"]:
            return
        if wait_for_job(job, self.stdout, starting="reading the first stage", also=_spent):
            self._report(run, job)

    def _print_estimate(self, choice: RerankChoice) -> None:
        estimate = rerank_estimate(choice)
        self.stdout.write(
            f"{estimate.pairs:,} images of {estimate.queries:,} queries are to be scored."
        )
        if choice.endpoint is not None:
            cost = "" if estimate.cost is None else f", about {dollars(estimate.cost)}"
            guess = "" if estimate.measured else " (guessed: this model has answered nothing yet)"
            self.stdout.write(
                f"{estimate.answered:,} are answered already; {estimate.requests:,} requests with "
                f"about {estimate.prompt_tokens:,} tokens{cost}{guess}."
            )
        if estimate.unavailable:
            why = "can't be sent" if choice.endpoint is not None else "are not embedded"
            self.stderr.write(f"{estimate.unavailable:,} {why} and go behind the others.")

    def _report(self, run: Run, job: Job) -> None:
        for error in job.item_errors.order_by("pk")[:ERRORS_SHOWN]:
            self.stderr.write(f"failed {error}")
        if job.state != Job.State.DONE:
            raise CommandError(f"Job {job.pk} {job.state}. {job.error}")
        run.refresh_from_db()
        unscored = run.endpoint.get("unscored", 0)
        behind = f"; {unscored:,} without a score are behind the others" if unscored else ""
        cost = "" if run.cost is None else f", {dollars(run.cost)}"
        self.stdout.write(f"Run {run.pk} is ready{cost}{behind}.")


def _choice(options: dict[str, Any]) -> RerankChoice:
    release, first = _first_stage(options["run"])
    model = None
    if options["model"]:
        model = EmbeddingModel.objects.filter(name=options["model"]).first()
        if model is None:
            raise CommandError(
                f"No image is embedded with {options['model']!r} yet; run "
                f"{command('embed --model ' + options['model'] + ' --wait')} first."
            )
    elif not options["api_model"]:
        raise CommandError("--endpoint needs --api-model, the model as the server names it.")
    setup = EndpointSetup(
        base_url=options["endpoint"] or "",
        model=options["api_model"],
        prompt=options["prompt"] or TEMPLATE,
        rpm=options["rpm"],
        prices=Prices(options["price_in"], options["price_out"]),
        max_cost=options["max_cost"],
    )
    return RerankChoice(
        release=release,
        first_stage=first,
        depth=options["depth"],
        embedding_model=model,
        endpoint=setup if options["endpoint"] else None,
        name=options["name"],
    )


def _first_stage(text: str) -> tuple[Release, Run | None]:
    if text.startswith("fixed:"):
        return release_named(text.removeprefix("fixed:")), None
    run = Run.objects.select_related("release").filter(pk=id_of(text) or 0).first()
    if run is None:
        raise CommandError(
            f"There is no run {text}: give the number in its page's address, or "
            "fixed:RELEASE for the fixed lists of a release."
        )
    return run.release, run


def _spent(job: Job) -> str:
    cost = job.result.get("cost")
    return f"{dollars(cost)} spent" if cost else ""
