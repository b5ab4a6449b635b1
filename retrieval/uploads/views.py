"""The pages on which admins upload images and import them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access import Role, require_role
from core.csv_rows import csv_field
from core.errors import Conflict, Invalid
from core.jobs.models import Job
from retrieval.corpus.counts import image_count
from retrieval.importing.choices import ImportChoices
from retrieval.importing.headers import FIELDS
from retrieval.uploads.columns import columns_chosen, columns_offered
from retrieval.uploads.pieces import Piece, files_there, pieces_store
from retrieval.uploads.preview import upload_thumbnail
from retrieval.uploads.services import (
    UploadGone,
    choices_of,
    import_begin,
    preview_begin,
    preview_job,
    table_send,
    upload_begin,
    upload_folder,
)
from retrieval.uploads.tables import SUFFIXES


@login_required
@require_http_methods(["GET", "POST"])
def upload(request: HttpRequest) -> HttpResponse:
    """Choose files; a POST begins an upload and returns its address."""
    require_role(request.user, Role.ADMIN)
    if request.method == "POST":
        upload_id = upload_begin(by=request.user)
        return JsonResponse(
            {"address": reverse("upload-preview", args=[UUID(upload_id)])}, status=201
        )
    fields = [field for field in FIELDS.values() if field.example]
    context = {"fields": fields, "imported": image_count() > 0}
    return render(request, "retrieval/upload.html", context)


@login_required
@require_safe
def upload_template(request: HttpRequest) -> HttpResponse:
    """A table to fill in: the canonical headers and a row as an example."""
    require_role(request.user, Role.ADMIN)
    fields = [field for field in FIELDS.values() if field.example]
    rows = ([field.name for field in fields], [field.example for field in fields])
    # With a byte order mark, by which Excel knows UTF-8.
    text = "\ufeff" + "".join(",".join(map(csv_field, row)) + "\r\n" for row in rows)
    answer = HttpResponse(text, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="images.csv"'
    return answer


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def upload_files(request: HttpRequest, upload: UUID) -> HttpResponse:
    """The files of an upload that are there, with their bytes; a POST stores more of them.

    Its body is a piece of a file, with `path`, `at` and `size` in the address; or a form with whole
    files, `file`, and the `path` of each.
    """
    require_role(request.user, Role.ADMIN)
    try:
        folder = upload_folder(upload.hex, request.user)
        if request.method != "POST":
            return JsonResponse({"files": files_there(folder)})
        pieces_store(folder=folder, pieces=_pieces(request))
    except UploadGone:
        raise Http404("There is no such upload.") from None
    except (KeyError, ValueError):
        return JsonResponse({"detail": "path, at and size are needed."}, status=400)
    except Invalid as error:
        detail = "; ".join(f"{name} {text[0]}" for name, text in error.by_field.items())
        return JsonResponse({"detail": detail}, status=400)
    except Conflict as error:
        return JsonResponse({"detail": str(error)}, status=409)
    return HttpResponse(status=204)


def _pieces(request: HttpRequest) -> list[Piece]:
    """The pieces of a request. KeyError, ValueError: something is missing."""
    if request.content_type != "multipart/form-data":
        at, size = int(request.GET["at"]), int(request.GET["size"])
        return [Piece(request.GET["path"], at, size, request)]
    if not (files := request.FILES.getlist("file")):
        raise KeyError("file")
    named = zip(request.POST.getlist("path"), files, strict=True)
    return [Piece(path, 0, file.size or 0, file) for path, file in named]


@login_required
@require_POST
def upload_unpack(request: HttpRequest, upload: UUID) -> HttpResponse:
    """Start the job that unpacks an upload and makes its preview."""
    require_role(request.user, Role.ADMIN)
    try:
        preview_begin(upload=upload.hex, by=request.user)
    except UploadGone:
        raise Http404("There is no such upload.") from None
    return HttpResponse(status=204)


@login_required
@require_POST
def upload_table(request: HttpRequest, upload: UUID) -> HttpResponse:
    """Read an upload by another table, which is sent alone; its preview says what comes of it."""
    require_role(request.user, Role.ADMIN)
    if (table := request.FILES.get("table")) is None:
        messages.error(request, "Choose a table.")
        return redirect("upload-preview", upload)
    try:
        table_send(upload=upload.hex, table=table, by=request.user)
    except UploadGone:
        raise Http404("There is no such upload; it was imported or removed.") from None
    except (Invalid, Conflict) as error:
        messages.error(request, str(error))
    return redirect("upload-preview", upload)


@login_required
@require_safe
def upload_image(request: HttpRequest, upload: UUID, number: int) -> HttpResponse:
    """The thumbnail of one of the first uploaded images."""
    require_role(request.user, Role.ADMIN)
    try:
        thumbnail = upload_thumbnail(upload_folder(upload.hex, request.user), number)
    except (UploadGone, FileNotFoundError):
        raise Http404("There is no such image in this upload.") from None
    return HttpResponse(thumbnail, content_type="image/jpeg")


@login_required
@require_http_methods(["GET", "POST"])
def upload_preview(request: HttpRequest, upload: UUID) -> HttpResponse:
    """The preview of an upload, once its job is done; a POST starts the job that imports it, or
    with the action "look" one that previews it as it is read by other choices.
    """
    require_role(request.user, Role.ADMIN)
    context: dict[str, object] = {"upload": upload, "tables": SUFFIXES}
    try:
        upload_folder(upload.hex, request.user)
        if request.method == "POST" and request.POST.get("action") == "look":
            choices = _choices(request.POST, upload)
            preview_begin(upload=upload.hex, by=request.user, choices=choices)
            return redirect("upload-preview", upload)
        if request.method == "POST":
            dataset = request.POST.get("dataset", "")
            context["dataset"] = dataset
            job = import_begin(upload=upload.hex, dataset=dataset, by=request.user)
            return redirect("job", pk=job.pk)
    except UploadGone:
        raise Http404("There is no such upload; it was imported or removed.") from None
    except Invalid as error:
        context["dataset_error"] = error.by_field["dataset"][0]
    except Conflict as error:
        context["problem"] = str(error)
    context["job"] = latest_job = preview_job(upload.hex)
    if latest_job is None:
        context["problem"] = "The upload isn't complete. Upload the files again."
    elif latest_job.state == Job.State.DONE:
        context["preview"] = latest_job.result
        context["choices"] = choices_of(latest_job)
        context.setdefault("dataset", latest_job.result["dataset"])
        context |= _importable(latest_job.result)
        if table := latest_job.result.get("table"):
            context["table"] = table | columns_offered(table)
    return render(request, "retrieval/upload_preview.html", context)


def _choices(form: QueryDict, upload: UUID) -> ImportChoices:
    """The choices of the latest preview with those of the form, of folders or of columns."""
    job = preview_job(upload.hex)
    if job is None:
        return ImportChoices()
    if table := (job.result or {}).get("table"):
        return columns_chosen(form, table["columns"], choices_of(job))
    return replace(choices_of(job), folders_are_species="folders_are_species" in form)


def _importable(preview: Mapping[str, Any]) -> dict[str, object]:
    """Whether a preview can be imported, and if not, why."""
    hint = ""
    if preview.get("table", {}).get("questions"):
        hint = "Answer the question below first."
    elif not preview["images"]:
        hint = "There is no image to import."
    return {"importable": not hint, "import_hint": hint}
