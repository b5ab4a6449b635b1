"""“How to label”, and practice with images whose labels are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from core.access import Role, at_least, require_role
from core.errors import Conflict
from core.ids import id_of
from core.markdown import markdown_html
from labeling.guidance.selectors import (
    default_text,
    how_to_label_text,
    introduction_of,
    practicable_queries,
    practice_draw,
    practice_labels,
    practice_notes,
    practice_queries,
)
from labeling.guidance.services import (
    how_to_label_save,
    introduction_close,
    practice_query_choose,
    practice_query_remove,
    practice_record,
)
from labeling.queries.models import Query
from labeling.studio.keymap import shown_key
from labeling.studio.preferences import keys_shown, preferences_of
from retrieval.corpus.models import Image

#: The actions whose keys “How to label” lists.
ACTIONS: Final = ("relevant", "not_relevant", "unsure", "undo", "zoom_in", "reference", "keys_help")
#: Those that the practice has keys for.
KEYS: Final = ("relevant", "not_relevant", "skip")
SESSION: Final = "practice"


class HowToLabelForm(forms.Form):
    """The text of “How to label”."""

    text = forms.CharField(
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 24}),
        help_text="Markdown works, and ![caption](image:12345) shows the image of the corpus with "
        "that id. Each person’s own keys follow the text. Leave it empty for the default text.",
    )


def how_to_label_context(user: Any) -> dict[str, Any]:
    """What the template `_how_to_label.html` shows. Three SQL queries."""
    return {
        "how_to_label": markdown_html(how_to_label_text(), heading=2),
        "keys": keys_shown(user, ACTIONS),
        "can_practice": practice_queries().exists(),
    }


@login_required
@require_http_methods(["GET", "POST"])
def how_to_label(request: HttpRequest) -> HttpResponse:
    """What a new annotator reads first; a POST closes it on the dashboard."""
    require_role(request.user, Role.ANNOTATOR)
    if request.method == "POST":
        introduction_close(user=request.user)
        return redirect("dashboard")
    return render(request, "labeling/how_to_label.html", how_to_label_context(request.user))


@login_required
@require_http_methods(["GET", "POST"])
def how_to_label_edit(request: HttpRequest) -> HttpResponse:
    """Change the text of “How to label”."""
    require_role(request.user, Role.ADMIN)
    form = HowToLabelForm(request.POST or None, initial={"text": how_to_label_text()})
    if request.method == "POST" and form.is_valid():
        text = form.cleaned_data["text"].replace("\r\n", "\n")
        how_to_label_save(text="" if text == default_text().strip() else text, by=request.user)
        messages.success(request, "Saved.")
        return redirect("how-to-label")
    return render(request, "labeling/how_to_label_form.html", {"form": form})


@dataclass(slots=True)
class _Practice:
    """A practice that has begun: its images with their labels, and the answers so far."""

    query: Query
    images: list[int]
    answers: list[bool]
    labels: dict[int, bool]

    @property
    def right(self) -> int:
        """How many answers agree with the label."""
        return sum(
            answer == self.labels[image]
            for image, answer in zip(self.images, self.answers, strict=False)
        )


def _begin(request: HttpRequest, query: Query) -> None:
    last = introduction_of(request.user)
    seed = f"{request.user.pk} {query.pk} {last.practiced_at if last else ''}"
    images = practice_draw(practice_labels(query), practice_notes(query), seed)
    if not images:
        messages.error(request, "None of its labels is beyond doubt, so choose another query.")
        return
    request.session[SESSION] = {"query": query.pk, "images": images, "answers": []}


def _begun(request: HttpRequest) -> _Practice | None:
    """The session's practice; None without one, or where its labels aren't what they were."""
    stored = request.session.get(SESSION)
    if not stored:
        return None
    query = practice_queries().filter(pk=stored["query"]).first()
    labels = practice_labels(query, stored["images"]) if query else {}
    if query is None or len(labels) < len(stored["images"]):
        del request.session[SESSION]
        messages.info(request, "The query’s images have changed, so the practice starts anew.")
        return None
    return _Practice(query, stored["images"], stored["answers"], labels)


@login_required
@require_http_methods(["GET", "POST"])
def practice(request: HttpRequest) -> HttpResponse:
    """Judge images whose labels are known, with feedback at once.

    Answers are kept in the session alone; they are no judgments. A POST of `query` begins, one of
    `image` and `answer` answers the next image, and sending that again changes nothing.
    """
    require_role(request.user, Role.ANNOTATOR)
    if "query" in request.POST:
        request.session.pop(SESSION, None)
        if pk := id_of(request.POST["query"]):
            _begin(request, get_object_or_404(practice_queries(), pk=pk))
        return redirect("practice")
    begun = _begun(request)
    if begun is None:
        return redirect("practice") if request.method == "POST" else _choice(request)
    if request.method == "POST":
        return _answer(request, begun)
    asked, done, total = id_of(request.GET.get("image")), len(begun.answers), len(begun.images)
    place = asked if asked and asked <= done else done + 1
    return _score(request, begun) if place > total else _image(request, begun, place)


def _choice(request: HttpRequest) -> HttpResponse:
    context: dict[str, Any] = {
        "queries": practice_queries(),
        "introduction": introduction_of(request.user),
    }
    if at_least(request.user, Role.ADMIN):
        context["choices"] = practicable_queries().filter(for_practice=None)
    return render(request, "labeling/practice.html", context)


def _answer(request: HttpRequest, begun: _Practice) -> HttpResponse:
    answers, images = begun.answers, begun.images
    answer, image = request.POST.get("answer"), id_of(request.POST.get("image"))
    if answer in ("relevant", "not_relevant") and [image] == images[len(answers) :][:1]:
        answers.append(answer == "relevant")
        request.session.modified = True
        if len(answers) == len(images):
            practice_record(
                user=request.user, query=begun.query, images=len(images), right=begun.right
            )
    return redirect(f"{request.path}?image={len(answers)}")


def _image(request: HttpRequest, begun: _Practice, place: int) -> HttpResponse:
    pk = begun.images[place - 1]
    keys = preferences_of(request.user).keys
    label = begun.labels[pk]
    answered = place <= len(begun.answers)
    context = {
        "query": begun.query,
        "image": get_object_or_404(Image, pk=pk),
        "place": place,
        "total": len(begun.images),
        "answered": answered,
        "agrees": answered and begun.answers[place - 1] == label,
        "label": label,
        "note": practice_notes(begun.query).get((pk, label)) if answered else None,
        "keys": {name: (" ".join(keys[name]), shown_key(keys[name][0])) for name in KEYS},
    }
    return render(request, "labeling/practice_image.html", context)


def _score(request: HttpRequest, begun: _Practice) -> HttpResponse:
    notes = practice_notes(begun.query)
    images = Image.objects.only(*Image.ADDRESS_FIELDS).in_bulk(begun.images)
    missed = [
        (images[pk], begun.labels[pk], notes.get((pk, begun.labels[pk])))
        for pk, answer in zip(begun.images, begun.answers, strict=True)
        if answer != begun.labels[pk]
    ]
    context = {
        "query": begun.query,
        "right": begun.right,
        "total": len(begun.images),
        "missed": missed,
    }
    return render(request, "labeling/practice_score.html", context)


@login_required
@require_POST
def practice_query(request: HttpRequest) -> HttpResponse:
    """Choose a query for practice, or with `remove` end its use (admins)."""
    require_role(request.user, Role.ADMIN)
    query = get_object_or_404(Query, pk=id_of(request.POST.get("query")))
    if "remove" in request.POST:
        practice_query_remove(query=query)
    else:
        try:
            practice_query_choose(query=query, by=request.user)
        except Conflict as error:
            messages.error(request, str(error))
    return redirect("practice")
