"""“How to label”, and practice with images whose labels are known."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from core.access import Role, at_least, require_role
from core.ids import id_of
from core.markdown import markdown_html
from core.pages import refusal_in_message
from labeling.guidance import selectors, services
from labeling.guidance.models import HowToLabel
from labeling.queries.models import Query
from labeling.studio.keymap import shown_key
from labeling.studio.preferences import keys_shown, preferences_of
from retrieval.corpus.models import Image

#: The actions whose keys “How to label” lists, and those that the practice has.
ACTIONS: Final = ("relevant", "not_relevant", "unsure", "undo", "zoom_in", "reference", "keys_help")
KEYS: Final = ("relevant", "not_relevant", "skip")
#: Under which the session holds a practice: {"query": id, "images": [id], "answers": [bool]}.
SESSION: Final = "practice"
HowToLabelForm = forms.modelform_factory(
    HowToLabel, fields=["text"], widgets={"text": forms.Textarea({"rows": 24})}
)


def how_to_label_context(user: Any) -> dict[str, Any]:
    """What the template `_how_to_label.html` shows. Three SQL queries."""
    return {
        "how_to_label": markdown_html(selectors.how_to_label_text(), heading=2),
        "keys": keys_shown(user, ACTIONS),
        "can_practice": selectors.practice_queries().exists(),
    }


@login_required
@require_http_methods(["GET", "POST"])
def how_to_label(request: HttpRequest) -> HttpResponse:
    """What a new annotator reads first; a POST closes it on the dashboard."""
    require_role(request.user, Role.ANNOTATOR)
    if request.method == "POST":
        services.introduction_close(user=request.user)
        return redirect("dashboard")
    return render(request, "labeling/how_to_label.html", how_to_label_context(request.user))


@login_required
@require_http_methods(["GET", "POST"])
def how_to_label_edit(request: HttpRequest) -> HttpResponse:
    """Change the text of “How to label”."""
    require_role(request.user, Role.ADMIN)
    form = HowToLabelForm(request.POST or None, initial={"text": selectors.how_to_label_text()})
    if form.is_valid():
        services.how_to_label_save(text=form.cleaned_data["text"], by=request.user)
        return redirect("how-to-label")
    return render(request, "labeling/how_to_label_form.html", {"form": form})


@login_required
@require_http_methods(["GET", "POST"])
def practice(request: HttpRequest) -> HttpResponse:
    """Judge images whose labels are known, with feedback at once.

    Answers are kept in the session alone; they are no judgments. A POST of `query` begins, one of
    `image` and `answer` answers the next image, and sending that again changes nothing.
    """
    require_role(request.user, Role.ANNOTATOR)
    if "query" in request.POST:
        _begin(request, id_of(request.POST["query"]))
        return redirect("practice")
    begun = request.session.get(SESSION, {"query": None, "images": [], "answers": []})
    query = selectors.practice_queries().filter(pk=begun["query"]).first()
    labels = selectors.practice_labels(query, begun["images"]) if query else {}
    if query is None or len(labels) < len(begun["images"]):
        return _choice(request)
    images, answers = begun["images"], begun["answers"]
    right = sum(labels[pk] == said for pk, said in zip(images, answers, strict=False))
    if request.method == "GET":
        context = {"query": query, "total": len(images), "right": right}
        place = id_of(request.GET.get("image"))
        if not place or place > len(answers):
            place = len(answers) + 1
        said = answers[place - 1] if place <= len(answers) else None
        if place <= len(images):
            return _image(request, images[place - 1], labels, said, context | {"place": place})
        missed = [pk for pk, said in zip(images, answers, strict=True) if labels[pk] != said]
        return _score(request, missed, labels, context)
    sent, said = id_of(request.POST.get("image")), request.POST.get("answer")
    if said in ("relevant", "not_relevant") and [sent] == images[len(answers) :][:1]:
        answers.append(said == "relevant")
        request.session[SESSION] = begun
        if len(answers) == len(images):
            right += answers[-1] == labels[images[-1]]
            services.practice_record(user=request.user, images=len(images), right=right)
    return redirect(f"{request.path}?image={len(answers)}")


def _begin(request: HttpRequest, pk: int | None) -> None:
    """Draw images of a query, new ones after each practice; without one, only end the last."""
    request.session.pop(SESSION, None)
    if pk is None:
        return
    query = get_object_or_404(selectors.practice_queries(), pk=pk)
    last = selectors.introduction_of(request.user)
    labels, notes = selectors.practice_labels(query), selectors.practice_notes(query)
    seed = f"{request.user.pk} {pk} {last and last.practiced_at}"
    if images := selectors.practice_draw(labels, notes, seed):
        request.session[SESSION] = {"query": pk, "images": images, "answers": []}
    else:
        messages.error(request, "None of its labels is beyond doubt, so choose another query.")


def _choice(request: HttpRequest) -> HttpResponse:
    """The queries to practice with; a practice whose labels have changed ends here."""
    request.session.pop(SESSION, None)
    others = selectors.practicable_queries().filter(for_practice=False)
    context = {
        "queries": selectors.practice_queries(),
        "introduction": selectors.introduction_of(request.user),
        "choices": others if at_least(request.user, Role.ADMIN) else [],
    }
    return render(request, "labeling/practice.html", context)


def _image(
    request: HttpRequest, pk: int, labels: dict[int, bool], said: bool | None, context: Any
) -> HttpResponse:
    """One image, to be answered or, with what the person `said`, beside its label."""
    keys = preferences_of(request.user).keys
    context |= {
        "image": get_object_or_404(Image, pk=pk),
        "answered": said is not None,
        "agrees": said == labels[pk],
        "label": labels[pk],
        "note": selectors.practice_notes(context["query"]).get((pk, labels[pk])),
        "keys": {name: (" ".join(keys[name]), shown_key(keys[name][0])) for name in KEYS},
    }
    return render(request, "labeling/practice_image.html", context)


def _score(
    request: HttpRequest, missed: list[int], labels: dict[int, bool], context: Any
) -> HttpResponse:
    notes, images = selectors.practice_notes(context["query"]), Image.objects.in_bulk(missed)
    context["missed"] = [(images[pk], labels[pk], notes.get((pk, labels[pk]))) for pk in missed]
    return render(request, "labeling/practice_score.html", context)


@login_required
@require_POST
def practice_query(request: HttpRequest) -> HttpResponse:
    """Choose a query for practice, or with `remove` end its use (admins)."""
    require_role(request.user, Role.ADMIN)
    query = get_object_or_404(Query, pk=id_of(request.POST.get("query")))
    with refusal_in_message(request):
        services.practice_query_set(query=query, use="remove" not in request.POST)
    return redirect("practice")
