"""The command `certify`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from labeling.certificates.bounds import (
    AuditRound,
    missing_at_most,
    more_without_hit,
    recall_at_least,
    relevant_at_most,
)
from labeling.certificates.sentences import certificate_sentences


class Command(BaseCommand):
    """Bounds what any pool still hides, by the counts of its audit."""

    help = (
        "How many relevant images a pool can still hide, by the counts of an audit: images drawn "
        "at random from those without a judgment, all judged. --found to --hits are of the last "
        "round; earlier ones, with other judgments between, are given by --round."
    )
    # Needs numbers alone, and no database.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        for name, meaning in (
            (
                "found",
                "relevant images known when the round began, hits of earlier rounds included",
            ),
            ("unjudged", "images without a judgment when the round began"),
            ("drawn", "of these, drawn at random and judged"),
            ("hits", "of the drawn, relevant"),
        ):
            parser.add_argument(f"--{name}", type=_count, required=True, help=meaning)
        parser.add_argument(
            "--round",
            type=_round,
            action="append",
            default=[],
            metavar="FOUND,UNJUDGED,DRAWN,HITS",
            dest="rounds",
            help="an earlier round; several in their order",
        )
        parser.add_argument("--confidence", type=float, default=0.95, help="default: %(default)s")
        parser.add_argument(
            "--target", type=float, default=0.9, help="recall to certify (default: %(default)s)"
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")

    def handle(self, *args: Any, **options: Any) -> None:
        rounds: list[AuditRound] = options["rounds"]
        sure = {"confidence": options["confidence"]}
        asked = {"target": options["target"], **sure}
        option = "--round: "
        try:
            if rounds:
                relevant_at_most(rounds)
            option = "--"
            counts = (options[name] for name in ("found", "unjudged", "drawn", "hits"))
            rounds = [*rounds, AuditRound(*counts)]
            found = rounds[-1].least
            if options["json"]:
                answer = {
                    "missing_at_most": missing_at_most(rounds, found=found, **sure),
                    "recall_at_least": recall_at_least(rounds, found=found, **sure),
                    "more_without_hit": more_without_hit(rounds, found=found, **asked),
                }
                self.stdout.write(json.dumps(answer))
            else:
                self.stdout.write(certificate_sentences(rounds, found=found, **asked))
        except ValueError as error:
            raise CommandError(f"{option}{error}") from error


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def _round(text: str) -> AuditRound:
    parts = text.split(",")
    if len(parts) != 4:
        raise argparse.ArgumentTypeError(f"{text!r} is not FOUND,UNJUDGED,DRAWN,HITS")
    try:
        return AuditRound(*map(_count, parts))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
