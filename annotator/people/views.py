"""The account page of everybody, the people pages of admins, and setting a password by a link."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import (
    INTERNAL_RESET_SESSION_TOKEN,
    PasswordChangeView,
    PasswordResetConfirmView,
)
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.views.decorators.http import require_http_methods, require_POST

from annotator.models import User
from annotator.people import forms, services
from annotator.people.first_admin import first_admin_allowed, first_admin_create
from annotator.people.links import LinkTokens, link_take
from annotator.people.selectors import people_listed, tokens_of
from annotator.people.tokens import token_create
from core.access import Role, at_least, require_role
from core.pages import refusal_in_form, refusal_in_message
from labeling.studio import keymap
from labeling.studio.preferences import preferences_of


@login_required
@require_http_methods(["GET", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """One's own password, tokens, keys, colors and time zone."""
    user = cast(User, request.user)
    form = forms.PreferencesForm(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        services.preferences_set(user=user, **form.cleaned_data)
        messages.success(request, "Saved.")
        return redirect("account")
    return _account_page(request, form=form)


@login_required
@require_POST
def account_mail(request: HttpRequest) -> HttpResponse:
    """Set one's e-mail address, and whether one gets e-mails."""
    require_role(request.user, Role.ANNOTATOR)
    user = cast(User, request.user)
    form = forms.MailForm(user, request.POST)
    if not form.is_valid():
        return _account_page(request, mail_form=form)
    services.mails_set(user=user, **form.cleaned_data)
    messages.success(request, "Saved.")
    return redirect("account")


@login_required
@require_http_methods(["GET", "POST"])
def account_tokens(request: HttpRequest) -> HttpResponse:
    """Make an API token, and show it this once."""
    if request.method == "GET":
        return redirect("account")
    form, made = forms.TokenForm(request.POST), ""
    if form.is_valid():
        with refusal_in_form(form):
            _token, made = token_create(user=cast(User, request.user), **form.cleaned_data)
            form = forms.TokenForm()
    return _account_page(request, token_form=form, made=made)


def _account_page(request: HttpRequest, **context: Any) -> HttpResponse:
    user = cast(User, request.user)
    context = {
        "form": forms.PreferencesForm(user),
        "token_form": forms.TokenForm(),
        "tokens": tokens_of(user),
        **context,
    }
    if at_least(user, Role.ANNOTATOR):
        if settings.EMAIL_URL:
            context.setdefault("mail_form", forms.MailForm(user))
        context |= {"keymap": keymap.as_json(), "keys": preferences_of(user).keys}
    return render(request, "account/account.html", context)


@login_required
@require_POST
def token_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of one's own API tokens."""
    get_object_or_404(tokens_of(cast(User, request.user)), pk=pk).delete()
    messages.success(request, "The token is revoked.")
    return redirect("account")


class PasswordView(PasswordChangeView):
    """Change one's own password; the log-in that one is in goes on."""

    form_class = forms.PasswordForm
    success_url = reverse_lazy("account")
    template_name = "account/password.html"

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        text = "Your password is changed. Your other log-ins and your API tokens have ended."
        messages.success(self.request, text)
        return response


class PasswordLinkView(PasswordResetConfirmView):
    """Set a password by a link from an admin, which works once, and go on as one who is logged in.

    404 for a link that was used, is too old or belongs to nobody who may log in.
    """

    form_class = forms.NewPasswordForm
    post_reset_login = True
    post_reset_login_backend = "django.contrib.auth.backends.ModelBackend"
    success_url = reverse_lazy("dashboard")
    template_name = "account/password.html"
    token_generator = LinkTokens()

    def get_user(self, uidb64: str) -> Any:
        user = super().get_user(uidb64)
        return user if user is not None and user.is_active else None

    @transaction.atomic
    def form_valid(self, form: Any) -> HttpResponse:
        token = self.request.session.get(INTERNAL_RESET_SESSION_TOKEN, "")
        if link_take(user=cast(User, self.user), token=token):
            return super().form_valid(form)
        self.validlink = False
        return self.render_to_response(self.get_context_data())

    def render_to_response(self, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        status = 200 if self.validlink else 404
        return super().render_to_response(context, status=status, **kwargs)


@require_http_methods(["GET", "POST"])
def first_admin(request: HttpRequest, token: str) -> HttpResponse:
    """Make the first admin by the link that `serve` prints, and log them in.

    404 for a link that was used or is too old.
    """
    if not first_admin_allowed(token):
        return render(request, "account/first_admin.html", status=404)
    form = forms.FirstAdminForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            username, password = form.cleaned_data["username"], form.cleaned_data["password"]
            user = first_admin_create(token=token, username=username, password=password)
            login(request, user, backend=PasswordLinkView.post_reset_login_backend)
            return redirect("dashboard")
    return render(request, "account/first_admin.html", {"form": form})


@login_required
@require_http_methods(["GET", "POST"])
def people(request: HttpRequest) -> HttpResponse:
    """Everybody, and a form that invites somebody."""
    require_role(request.user, Role.ADMIN)
    form = forms.InviteForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            invited = services.person_invite(**form.cleaned_data)
            _logged(request, invited, "Invited")
            return _link_page(request, invited)
    return render(request, "account/people.html", {"people": people_listed(), "form": form})


@login_required
@require_http_methods(["GET", "POST"])
def person(request: HttpRequest, pk: int) -> HttpResponse:
    """One person, with a form for the role."""
    one = _get_person(request, pk)
    form = forms.RoleForm(request.POST or None, initial={"role": one.role})
    if request.method == "POST" and form.is_valid():
        role, by = Role(form.cleaned_data["role"]), cast(User, request.user)
        with refusal_in_message(request):
            services.role_set(user=one, role=role, by=by)
            _logged(request, one, f"Role: {role.label.lower()}")
            messages.success(request, "Saved.")
        return redirect("person", pk=pk)
    return render(request, "account/person.html", {"person": one, "form": form})


def _get_person(request: HttpRequest, pk: int) -> User:
    require_role(request.user, Role.ADMIN)
    return get_object_or_404(User, pk=pk)


def _link_page(request: HttpRequest, one: User) -> HttpResponse:
    """Show a link by which a person sets a password, this once."""
    key = urlsafe_base64_encode(force_bytes(one.pk)), LinkTokens().make_token(one)
    context = {
        "person": one,
        "link": request.build_absolute_uri(reverse("password-link", args=key)),
        "expires_at": timezone.now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT),
    }
    return render(request, "account/link.html", context)


@login_required
@require_POST
def person_link(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a link for a forgotten password, or for an invitation that was lost."""
    one = _get_person(request, pk)
    if not one.is_active:
        messages.error(request, f"{one} is deactivated.")
        return redirect("person", pk=pk)
    _logged(request, one, "Made a link for a password")
    return _link_page(request, one)


@login_required
@require_POST
def person_deactivate(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep a person out."""
    one, by = _get_person(request, pk), cast(User, request.user)
    with refusal_in_message(request):
        services.person_deactivate(user=one, by=by)
        _logged(request, one, "Deactivated")
        done = f"{one} is deactivated. Their log-ins and API tokens have ended."
        messages.success(request, done)
    return redirect("person", pk=pk)


@login_required
@require_POST
def person_reactivate(request: HttpRequest, pk: int) -> HttpResponse:
    """Let a person in again, by a link."""
    one = _get_person(request, pk)
    services.person_reactivate(user=one)
    _logged(request, one, "Reactivated")
    return _link_page(request, one)


@login_required
@require_http_methods(["GET", "POST"])
def person_leave(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a person a pseudonym, once that is confirmed."""
    one, by = _get_person(request, pk), cast(User, request.user)
    if request.method == "GET":
        return render(request, "account/person_leave.html", {"person": one})
    with refusal_in_message(request):
        services.person_leave(user=one, by=by)
        _logged(request, one, "Made a pseudonym")
        done = "Their name, tokens and preferences are deleted; this is their name now."
        messages.success(request, done)
    return redirect("person", pk=pk)


def _logged(request: HttpRequest, one: User, what: str) -> None:
    services.change_logged(user=one, by=cast(User, request.user), what=what)
