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

#: The actions whose keys “How to label” lists, and those of the practice.
ACTIONS: Final = ("relevant", "not_relevant", "unsure", "undo", "zoom_in", "reference", "keys_help")
KEYS: Final = ("relevant", "not_relevant", "skip")
#: The session's key of a practice: {"query": id, "images": [id], "answers": [bool]}.
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
    """Judge images whose labels are known, with immediate feedback.

    Answers are stored only in the session; they are no judgments. A POST of `query` begins a
    practice; a POST of `image` and `answer` answers the next image, and a repeat changes nothing.
    """
    require_role(request.user, Role.ANNOTATOR)
    if "query" in request.POST:
        _begin(request, id_of(request.POST["query"]))
        return redirect("practice")
    session = request.session.get(SESSION, {"query": None, "images": [], "answers": []})
    query = selectors.practice_queries().filter(pk=session["query"]).first()
    labels = selectors.practice_labels(query, session["images"]) if query else {}
    if query is None or len(labels) < len(session["images"]):
        return _choice(request)
    images, answers = session["images"], session["answers"]
    right = sum(labels[pk] == answer for pk, answer in zip(images, answers, strict=False))
    if request.method == "GET":
        context = {"query": query, "total": len(images), "right": right}
        position = id_of(request.GET.get("image"))
        if not position or position > len(answers):
            position = len(answers) + 1
        answer = answers[position - 1] if position <= len(answers) else None
        if position <= len(images):
            return _image(
                request, images[position - 1], labels, answer, context | {"place": position}
            )
        missed = [pk for pk, answer in zip(images, answers, strict=True) if labels[pk] != answer]
        return _score(request, missed, labels, context)
    sent, answer = id_of(request.POST.get("image")), request.POST.get("answer")
    if answer in ("relevant", "not_relevant") and [sent] == images[len(answers) :][:1]:
        answers.append(answer == "relevant")
        request.session[SESSION] = session
        if len(answers) == len(images):
            right += answers[-1] == labels[images[-1]]
            services.practice_record(user=request.user, images=len(images), right=right)
    return redirect(f"{request.path}?image={len(answers)}")


def _begin(request: HttpRequest, pk: int | None) -> None:
    """Draw a query's images, others after each practice; without a query, only end the practice."""
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
    """Choose a query to practice with; ends a practice whose labels have changed."""
    request.session.pop(SESSION, None)
    others = selectors.practicable_queries().filter(for_practice=False)
    context = {
        "queries": selectors.practice_queries(),
        "introduction": selectors.introduction_of(request.user),
        "choices": others if at_least(request.user, Role.ADMIN) else [],
    }
    return render(request, "labeling/practice.html", context)


def _image(
    request: HttpRequest, pk: int, labels: dict[int, bool], answer: bool | None, context: Any
) -> HttpResponse:
    """An image to be answered or, once answered, beside its label."""
    keys = preferences_of(request.user).keys
    context |= {
        "image": get_object_or_404(Image, pk=pk),
        "answered": answer is not None,
        "agrees": answer == labels[pk],
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
