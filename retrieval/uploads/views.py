"""The pages on which admins upload images and import them."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access import Role, require_role
from core.errors import Conflict, Invalid
from retrieval.importing.records import ImportRefused
from retrieval.importing.table import OPTIONAL, REQUIRED
from retrieval.uploads.services import (
    MOST_SHOWN,
    UploadGone,
    import_begin,
    piece_store,
    preview,
    upload_begin,
    upload_folder,
    upload_thumbnail,
)


@login_required
@require_http_methods(["GET", "POST"])
def upload(request: HttpRequest) -> HttpResponse:
    """Choose files; a POST begins an upload and answers its address."""
    require_role(request.user, Role.ADMIN)
    if request.method == "POST":
        begun = upload_begin(by=request.user)
        return JsonResponse({"address": reverse("upload-preview", args=[UUID(begun)])}, status=201)
    context = {"required": REQUIRED, "optional": OPTIONAL}
    return render(request, "retrieval/upload.html", context)


@login_required
@require_POST
def upload_piece(request: HttpRequest, upload: UUID) -> HttpResponse:
    """Store a piece of a file, the request's body: `path`, `at` and `size` are in the address."""
    require_role(request.user, Role.ADMIN)
    try:
        at, size = int(request.GET["at"]), int(request.GET["size"])
        piece_store(
            folder=upload_folder(upload.hex, request.user),
            path=request.GET["path"],
            at=at,
            size=size,
            piece=request,  # type: ignore[arg-type]
        )
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


@login_required
@require_safe
def upload_image(request: HttpRequest, upload: UUID) -> HttpResponse:
    """The thumbnail of an uploaded image, by its `path`."""
    require_role(request.user, Role.ADMIN)
    try:
        folder = upload_folder(upload.hex, request.user)
        thumbnail = upload_thumbnail(folder, request.GET.get("path", ""))
    except (UploadGone, LookupError, OSError, ValueError):
        raise Http404("There is no such image in this upload.") from None
    return HttpResponse(thumbnail, content_type="image/jpeg")


@login_required
@require_http_methods(["GET", "POST"])
def upload_preview(request: HttpRequest, upload: UUID) -> HttpResponse:
    """What was uploaded; a POST imports it by a job."""
    require_role(request.user, Role.ADMIN)
    context: dict[str, object] = {"most": MOST_SHOWN, "upload": upload}
    try:
        if request.method == "POST":
            dataset = request.POST.get("dataset", "")
            context["dataset"] = dataset
            job = import_begin(upload=upload.hex, dataset=dataset, by=request.user)
            return redirect("job", pk=job.pk)
    except UploadGone:
        raise Http404("There is no such upload; it was imported or removed.") from None
    except Invalid as error:
        context["dataset_error"] = error.by_field["dataset"][0]
    except ImportRefused as error:
        context["problem"] = error.reason
    try:
        folder = upload_folder(upload.hex, request.user)
        context["preview"] = found = preview(folder)
        context.setdefault("dataset", found.dataset)
    except UploadGone:
        raise Http404("There is no such upload; it was imported or removed.") from None
    except ImportRefused as error:
        context["problem"] = error.reason
    return render(request, "retrieval/upload_preview.html", context)
