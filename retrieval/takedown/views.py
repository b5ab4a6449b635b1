"""The page on which an admin takes an image down."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from core.access import Role, require_role
from retrieval.corpus.models import Image
from retrieval.takedown.services import LONGEST_REASON, image_take_down


class TakedownForm(forms.Form):
    """Why an image has to go."""

    reason = forms.CharField(
        max_length=LONGEST_REASON, help_text="Kept with the image's number, for the record."
    )


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def take_down(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, then remove an image for good (admins)."""
    require_role(request.user, Role.ADMIN)
    image = get_object_or_404(Image.objects.filter(takedown=None), pk=pk)
    form = TakedownForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        removed = image_take_down(image=image, reason=form.cleaned_data["reason"], by=request.user)
        what = f"Image {pk} was" if len(removed) == 1 else f"{len(removed)} equal images were"
        messages.success(request, f"{what} taken down.")
        return redirect("flags")
    context = {
        "form": form,
        "image": image,
        "equal": Image.objects.filter(sha256=image.sha256).exclude(pk=pk).count()
        if image.sha256
        else 0,
    }
    return render(request, "retrieval/take_down.html", context)
