"""Every write of releases: claiming a version, making it, exporting its files; and verifying it."""

from __future__ import annotations

import hashlib
import re
import secrets
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from core import storage
from core.errors import Conflict, Refused
from core.files import atomic_directory
from core.jobs.models import Job
from core.jobs.services import job_advance, job_create, job_retry
from core.locks import session_lock
from labeling.audits.services import draw_keys_end
from labeling.blind.release_audits import release_keys_end
from labeling.queries.benchmarks import benchmark_named
from labeling.queries.models import Benchmark, default_benchmark
from releases import selectors
from releases.making.files import Written, file_steps, files_write
from releases.making.progress import Progress, Report, job_report
from releases.making.take_snapshot import SNAPSHOT_STEPS, snapshot_take
from releases.making.takedown import release_redact
from releases.models import Release
from releases.signals import release_made
from releases.snapshot.manifest import listed_names
from releases.snapshot.release_files import RELEASE_FILES, SNAPSHOT_FOLDER
from releases.snapshot.snapshot import OPEN_FOLDER, Snapshot
from retrieval.corpus.models import ImageTakedown
from retrieval.embedding.counts import has_embeddings
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel

JOB_KIND = "export_release"
#: What an hour was paid with: "15.50 USD".
PAY: Final = re.compile(r"\d{1,7}(\.\d{1,2})? \S{1,10}", re.ASCII)


@transaction.atomic
def release_create(
    *,
    name: str,
    created_by: Any,
    options: Mapping[str, Any] | None = None,
    benchmark: Benchmark | None = None,
) -> Release:
    """Begin the next version of a name: the row, and the job that makes it.

    `options`: rerank_model, the name of the model whose top 100 are the fixed lists, "" for none
    (without it: the model in use if any image is embedded under it); include_images, whether the
    folders for Hugging Face and MTEB hold the images' bytes; pay_per_hour, what people were paid
    for an hour, such as "15.50 USD" (else nothing is said); test_labels, "hidden" (without it) or
    "public"; test_halves, whether hidden labels have a public and a private half, see
    `_halves_secret`. `benchmark`: the one whose queries it holds; without it that of the earlier
    versions, or the only one. A version whose making failed or was cut short is continued, with
    these options.

    Raises ValidationError, with the field named, for a name that is blank or too long, holds
    control characters, ends like a version, is a number or belongs to an imported or another
    benchmark; while a version of the name is being made; for an unknown model; for halves that
    can't be, or public labels, see `_halves_secret`; and where there are several benchmarks and
    none is named.
    """
    release = release_claim(name=name, created_by=created_by, options=options, benchmark=benchmark)
    _job_begin(release, created_by)
    return release


@transaction.atomic
def release_retry(*, release: Release, by: Any) -> Release:
    """Continue a release whose making failed or was cut short, with its own options.

    Conflict: it is made, being made, or imported.
    """
    locked = Release.objects.select_for_update(of=("self",)).get(pk=release.pk)
    if locked.files_ready:
        raise Conflict(f"{locked} is made and never changes.")
    if locked.state in Job.UNFINISHED:
        raise Conflict(_being_made(locked))
    if locked.origin != Release.Origin.MADE:
        raise Conflict("An imported benchmark is imported again, from its files.")
    _job_begin(locked, by)
    return locked


@transaction.atomic
def release_claim(
    *,
    name: str,
    created_by: Any,
    options: Mapping[str, Any] | None = None,
    origin: str = Release.Origin.MADE,
    benchmark: Benchmark | None = None,
) -> Release:
    """The row of the next version of a name, new or left over from a failure, without a job.

    Arguments and errors are those of `release_create`. All versions of a name have one origin and
    one benchmark; imported ones have the first benchmark.
    """
    name = name.strip()
    if not name.isprintable():
        raise ValidationError({"name": "The name holds characters that can't be printed."})
    chosen = _options(options or {})
    test_labels = (options or {}).get("test_labels") or Release.TestLabels.HIDDEN
    halves = bool((options or {}).get("test_halves"))
    versions = Release.objects.select_for_update(of=("self",)).filter(name=name)
    latest = versions.order_by("-version").first()
    if latest is None and (selectors.VERSIONED.fullmatch(name) or name.isdecimal()):
        message = f"{name!r} would name a release by its version or number; choose another name."
        raise ValidationError({"name": message})
    if latest is not None and latest.origin != origin:
        kind = "made here" if origin == Release.Origin.IMPORTED else "an imported benchmark"
        message = f"{name!r} is {kind}; choose another name."
        raise ValidationError({"name": message})
    if latest is not None and benchmark not in (None, latest.benchmark):
        message = f"{name!r} holds queries of {latest.benchmark}; choose another name."
        raise ValidationError({"name": message})
    if benchmark is not None and benchmark.screening:
        message = f"{benchmark} is for screening, and no releases are made of it."
        raise ValidationError({"benchmark": message})
    if latest is not None and not latest.files_ready:
        if latest.state in Job.UNFINISHED:
            raise ValidationError({"name": _being_made(latest)})
        latest.options = chosen
        latest.test_labels = test_labels
        latest.halves_secret = _halves_secret(latest, halves)
        latest.previous = selectors.release_find(name=latest.name)
        latest.save(update_fields=["options", "test_labels", "halves_secret", "previous"])
        return latest
    version = latest.version + 1 if latest else 1
    if latest is not None:
        benchmark = latest.benchmark
    elif origin == Release.Origin.IMPORTED:
        benchmark = Benchmark.objects.get(pk=default_benchmark())
    release = Release(
        name=name,
        benchmark=benchmark or benchmark_named(""),
        version=version,
        origin=origin,
        test_labels=test_labels,
        previous=latest,
        created_by=created_by,
        options=chosen,
    )
    release.halves_secret = _halves_secret(release, halves)
    return _insert(release)


def _halves_secret(release: Release, chosen: bool) -> str:
    """The secret that divides the test split of a new release into halves; empty for none.

    While a board of the same benchmark is open, its secret is taken, whatever is chosen: with other
    halves, or none, the means over its private half would follow from those of both releases.

    Raises ValidationError for halves of public labels, or beside a release of the benchmark that
    shows more of its test split; and for public labels while a board is open.
    """
    if release.origin != Release.Origin.MADE:
        return ""
    others = Release.objects.exclude(pk=release.pk).filter(
        benchmark=release.benchmark, origin=Release.Origin.MADE, board_closed_at=None
    )
    divided = others.exclude(halves_secret="").order_by("-pk").first()
    if divided is not None and not release.labels_hidden:
        message = f"The board of {divided} is open, so labels of its test queries stay hidden."
        raise ValidationError({"test_labels": message})
    if divided is not None:
        return divided.halves_secret
    if not chosen:
        return ""
    if not release.labels_hidden:
        message = "A test split with public labels has no private half."
        raise ValidationError({"test_halves": message})
    whole = others.made().order_by("-pk").first()
    if whole is not None:
        message = (
            f"{whole} shows means over the whole test split, which tell of its private half. "
            "Choose halves with the first release of a benchmark."
        )
        raise ValidationError({"test_halves": message})
    return secrets.token_hex(32)


def _insert(release: Release) -> Release:
    release.full_clean(validate_unique=False, validate_constraints=False)
    try:
        with transaction.atomic():
            release.save()
    except IntegrityError:
        # Another request took the name at this moment.
        raise ValidationError({"name": _being_made(release)}) from None
    return release


def _being_made(release: Release) -> str:
    return f"Version {release.version} of {release.name!r} is already being made."


def _job_begin(release: Release, by: Any) -> None:
    if release.job is None or not job_retry(job=release.job):
        release.job = job_create(
            kind=JOB_KIND,
            params={"release": release.pk},
            created_by=by,
            title=f"Release {release}",
        )
        release.save(update_fields=["job"])


def _options(requested: Mapping[str, Any]) -> dict[str, Any]:
    """The options to store, with defaults in place of those that weren't given."""
    name = requested.get("rerank_model")
    if name is None:
        name = model_in_use() if has_embeddings(model_in_use()) else ""
    elif name and not EmbeddingModel.objects.filter(name=name).exists():
        known = ", ".join(EmbeddingModel.objects.order_by("name").values_list("name", flat=True))
        message = f"No image is embedded with {name!r}; known models: {known or 'none'}."
        raise ValidationError({"rerank_model": message})
    options = {"rerank_model": name, "include_images": bool(requested.get("include_images", False))}
    if pay := str(requested.get("pay_per_hour") or "").strip():
        if not PAY.fullmatch(pay):
            message = "Write an amount and a currency, such as “15.50 USD”."
            raise ValidationError({"pay_per_hour": message})
        options["pay_per_hour"] = pay
    return options


#: Writes a snapshot's tables into an empty directory, and reports its steps.
TakeSnapshot = Callable[[Path, Progress], None]


def release_make(
    *, release: Release, job: Job | None = None, report: Report | None = None
) -> Release:
    """Write a release's files and record them; nothing changes where it is made already.

    `report` gets the steps as they advance. See `release_fill`. JobFailed: the model of the fixed
    lists can't be loaded.
    """

    def take(directory: Path, progress: Progress) -> None:
        snapshot_take(release=release, directory=directory, progress=progress)

    return release_fill(release=release, steps=SNAPSHOT_STEPS, take=take, job=job, report=report)


def release_fill(
    *,
    release: Release,
    steps: tuple[str, ...],
    take: TakeSnapshot,
    job: Job | None = None,
    report: Report | None = None,
) -> Release:
    """Take a snapshot by `take`, whose steps are `steps`, write all files of the release from it,
    and record them in the row.

    If two processes do this at once, the second waits and leaves the release unchanged. All files
    appear at once, before the row lists them. A process that is killed leaves only what a repeat
    replaces.
    """
    with session_lock(release.lock), ExitStack() as stack:
        release.refresh_from_db()
        record = stack.enter_context(job_report(job))

        def advanced(steps: object) -> None:
            record(progress.steps)
            if report is not None:
                report(progress.steps)

        progress = Progress((*steps, *file_steps()), advanced)
        if not release.files_ready:
            taken_down = set(ImageTakedown.objects.values_list("pk", flat=True))
            written, revealed = _files_make(release, take, progress)
            _record(release, written, revealed)
            release.refresh_from_db()
            meanwhile = ImageTakedown.objects.exclude(pk__in=taken_down)
            release_redact(release=release, image_ids=list(meanwhile.values_list("pk", flat=True)))
        if job is not None:
            total = len(progress.steps)
            job_advance(job=job, done=total - job.done, total=total)
    release.refresh_from_db()
    return release


@dataclass(frozen=True, slots=True)
class _RevealedKeys:
    """The keys of draws that a snapshot reveals."""

    rounds: set[bytes]
    audits: set[bytes]


def _files_make(
    release: Release, take: TakeSnapshot, progress: Progress
) -> tuple[Written, _RevealedKeys]:
    # This replaces the whole directory that a process killed before its commit may have left.
    with storage.writing_directory(release.directory) as partial:
        snapshot = Snapshot(partial / SNAPSHOT_FOLDER)
        snapshot.directory.mkdir()
        take(snapshot.directory, progress)
        written = files_write(release=release, directory=partial, progress=progress)
        rounds = {bytes.fromhex(drawn_round.key) for drawn_round in snapshot.rounds()}
        audits = {bytes.fromhex(audit.key) for audit in snapshot.release_audits()}
    return written, _RevealedKeys(rounds, audits)


@transaction.atomic
def _record(release: Release, written: Written, revealed: _RevealedKeys) -> None:
    draw_keys_end(keys=revealed.rounds)
    release_keys_end(keys=revealed.audits)
    counts = written.counts
    Release.objects.filter(pk=release.pk).update(
        made_at=Now(),
        file_list=written.file_list,
        archive=written.archive,
        difference=written.difference,
        header=written.header,
        val_queries=counts.val_queries,
        test_queries=counts.test_queries,
        positives=counts.positives,
        judgments=counts.judgments or 0,
    )
    release_made.send(None, release=release)


def board_close(*, release: Release) -> Release:
    """End submissions with test queries, and show the means over the private half to everybody; a
    repeat changes nothing. Conflict: it isn't made, or has no halves."""
    if not (release.files_ready and release.has_halves):
        raise Conflict(f"{release} has no private half to show.")
    open_board = Release.objects.filter(pk=release.pk, board_closed_at=None)
    open_board.update(board_closed_at=Now())
    release.refresh_from_db()
    return release


class ReleaseUnusable(Refused):
    """A release's files can't be exported or verified; the text says why and what to do."""


def release_export(
    *,
    name: str,
    directory: Path,
    replace: bool = False,
    new: bool = False,
    options: Mapping[str, Any] | None = None,
    benchmark: Benchmark | None = None,
    report: Report | None = None,
) -> Release:
    """Write a release's files to `directory`.

    `new` first makes the next version of the name, with the options and the benchmark of
    `release_create`; else `name` is as for `selectors.release_named`, and options are refused,
    since a release never changes. `replace` replaces a directory that holds a release and nothing
    else. Raises `selectors.UnknownRelease`, ValidationError for an impossible name or option,
    `core.files.TargetRefused` for an impossible directory, ReleaseUnusable for lost or damaged
    files, and JobFailed where the fixed lists can't be made.
    """
    replaceable = listed_names(directory) | set(RELEASE_FILES)
    with atomic_directory(directory, replace=replace, replaceable=replaceable) as partial:
        if new:
            claimed = release_claim(
                name=name, created_by=None, options=options, benchmark=benchmark
            )
            release = release_make(release=claimed, report=report)
        else:
            release = selectors.release_named(name)
            if options or benchmark:
                raise ValidationError(
                    f"{release} is made and never changes; options are for a new version."
                )
        release_copy(release=release, directory=partial)
    return release


def release_copy(*, release: Release, directory: Path) -> None:
    """Copy a release's files. ReleaseUnusable: one is lost or isn't the one that was made."""
    for entry in release.file_list:
        source, target = release.directory / entry["name"], directory / entry["name"]
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with storage.reading(source) as file, target.open("wb") as copy:
                sha256 = storage.copied(file, copy)
        except FileNotFoundError:
            raise ReleaseUnusable(
                f"{storage.shown(source)} is gone: restore it from a backup, or make a new version."
            ) from None
        if sha256 != entry["sha256"]:
            raise ReleaseUnusable(
                f"{storage.shown(source)} is not as it was made (its SHA-256 differs): restore it "
                "from a backup, or make a new version."
            )


@dataclass(frozen=True, slots=True)
class Finding:
    """A file of a release that has a problem."""

    name: str
    problem: str


def release_verify(*, release: Release) -> list[Finding]:
    """The problems of a release's files, by name: each stored file is compared with its SHA-256,
    and with the file that the snapshot gives now, byte for byte. A file that isn't the release's is
    a problem too.

    If the snapshot is damaged, nothing is written from it. ReleaseUnusable: the release isn't made.
    """
    if not release.files_ready:
        raise ReleaseUnusable(f"{release} isn't made yet.")
    entries = [*release.file_list, *_archives(release)]
    own = {release.directory / entry["name"] for entry in entries} | {
        Snapshot(release.directory / folder).statistics_path
        for folder in (SNAPSHOT_FOLDER, OPEN_FOLDER)
    }
    problems = {
        path.relative_to(release.directory).as_posix(): "is none of the release's files"
        for path in storage.names_below(release.directory)
        if path not in own
    }
    problems |= {
        entry["name"]: problem
        for entry in entries
        if (problem := _stored_problem(release.directory / entry["name"], entry["sha256"]))
    }
    folders = {Path(name).parts[0] for name in problems}
    if folders.isdisjoint({SNAPSHOT_FOLDER, OPEN_FOLDER}):
        problems = _rewriting_problems(release) | problems
    return [Finding(name, problems[name]) for name in sorted(problems)]


def _archives(release: Release) -> list[dict[str, Any]]:
    return [release.archive, release.archive["open"]] if release.archive else []


def _stored_problem(path: Path, sha256: str) -> str:
    try:
        with storage.reading(path) as file:
            stored = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return "is gone"
    return "" if stored == sha256 else "is not as it was made"


def _rewriting_problems(release: Release) -> dict[str, str]:
    """The files that the snapshot gives differently now, with what differs."""
    with tempfile.TemporaryDirectory(
        dir=release.directory.parent, prefix=f".{release.pk}.verifying-"
    ) as folder:
        directory = Path(folder)
        (directory / SNAPSHOT_FOLDER).symlink_to(release.snapshot_directory)
        progress = Progress(file_steps())
        written = files_write(release=release, directory=directory, progress=progress)
    then = {entry["name"]: entry["sha256"] for entry in release.file_list}
    then |= {entry["name"]: entry["sha256"] for entry in _archives(release)}
    now = {entry["name"]: entry["sha256"] for entry in written.file_list}
    archives = (written.archive, written.archive["open"])
    now |= {archive["name"]: archive["sha256"] for archive in archives}
    problems = {name: "is not written any more" for name in then if name not in now}
    problems |= {name: "is written now, but wasn't then" for name in now if name not in then}
    problems |= {
        name: "comes out differently from the snapshot"
        for name in then
        if name in now and then[name] != now[name]
    }
    return problems
