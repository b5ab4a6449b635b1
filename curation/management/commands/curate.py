from __future__ import annotations

import json
import re
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from core.commands import ServiceCommand
from core.files import open_as_callers
from curation.config import read_config
from curation.corpus_files import write_corpus
from curation.fetching import FAILED, fetch
from curation.pipeline import Curated, Step, curate
from curation.report import report_html


class Command(ServiceCommand):
    help = (
        "Make a corpus from the world's archives: plan (what each step would keep), run (write the "
        "files), fetch (download the images). docs/curation.md has the settings."
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        plan = actions.add_parser("plan", help="print what each step would keep")
        run = actions.add_parser("run", help="write the corpus's files and a report")
        for action in (plan, run):
            action.add_argument("config", type=Path, help="a TOML file")
        run.add_argument("folder", type=Path, help="the corpus's folder; new or empty")
        download = actions.add_parser("fetch", help="download the images of a corpus")
        download.add_argument("folder", type=Path)
        download.add_argument("--longest-side", type=int, help="pixels (default: as configured)")
        download.add_argument(
            "--per-second", type=float, default=10.0, help="requests per host (default 10)"
        )
        download.add_argument("--threads", type=int, default=8)

    @open_as_callers()
    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, options["action"])(**options)

    def plan(self, config: Path, **options: Any) -> None:
        """Curate into a scratch folder and write nothing."""
        with tempfile.TemporaryDirectory(dir=config.resolve().parent) as scratch:
            curated = self._curate(config, Path(scratch))
            self._refusals(curated)

    def run(self, config: Path, folder: Path, **options: Any) -> None:
        """Curate, and write the corpus."""
        if folder.exists() and any(folder.iterdir()):
            raise CommandError(f"{folder} isn't empty.")
        folder.mkdir(parents=True, exist_ok=True)
        work = folder / "work"
        work.mkdir()
        curated = self._curate(config, work)
        write_corpus(curated.connection, folder, curated.mapping)
        report = report_html(curated, title=config.stem, land=_land())
        (folder / "report.html").write_text(report)
        settings = read_config(config)
        content = {
            "seed": settings.seed,
            "longest_side": settings.longest_side,
            "steps": [asdict(step) for step in curated.steps],
        }
        (folder / "curation.json").write_text(json.dumps(content, indent=1) + "\n")
        self._refusals(curated)
        curated.connection.close()
        shutil.rmtree(work)
        self.stdout.write(
            f"\nNext: curate fetch {folder}, then import_images {folder / 'train.json'}"
        )

    def fetch(self, folder: Path, **options: Any) -> None:
        """Download what isn't there yet."""
        side = options["longest_side"]
        if side is None:
            try:
                side = json.loads((folder / "curation.json").read_text())["longest_side"]
            except (OSError, ValueError, KeyError):
                raise CommandError(f"{folder} holds no curation; name --longest-side.") from None
        with tqdm(unit=" images", desc="Fetching", disable=options["verbosity"] == 0) as bar:

            def show(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            fetched = fetch(
                folder,
                longest_side=side,
                per_second=options["per_second"],
                threads=options["threads"],
                progress=show,
            )
        self.stdout.write(
            f"{fetched.present:,} images are there, of these {fetched.before:,} from before."
        )
        for reason, count in sorted(fetched.failed.items()):
            self.stdout.write(f"{count:,} failed: {reason}")
        if fetched.failed:
            raise CommandError(f"Some images failed; {folder / FAILED} lists them. Run it again.")

    def _curate(self, config: Path, work: Path) -> Curated:
        self.stdout.write(
            f"{'':28}{'photos':>14}{'observations':>14}{'species':>10}{'observers':>11}"
        )

        def show(step: Step) -> None:
            self.stdout.write(
                f"{step.name:28}{step.photos:>14,}{step.observations:>14,}"
                f"{step.species:>10,}{step.observers:>11,}"
            )
            self.stdout.flush()

        return curate(read_config(config), file=work / "work.duckdb", notify=show)

    def _refusals(self, curated: Curated) -> None:
        rows = curated.connection.execute(
            "SELECT file, reason, sum(rows) FROM refused GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        if rows:
            self.stdout.write(
                "\nProblems in the sources: rows refused, fields left out or corrected"
            )
        for file, reason, count in rows:
            self.stdout.write(f"  {count:>12,}  {reason} ({file})")


def _land() -> str:
    """The path of the world's land in the pages' map."""
    file = finders.find("img/world.svg")
    match = re.search(r'id="land" d="([^"]*)"', Path(file).read_text()) if file else None
    return match[1] if match else ""
