"""Forms of the account and people pages: they check what was typed; the services do the writing."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm

from annotator.models import ApiToken, Theme, User
from annotator.people.selectors import time_zones
from annotator.people.services import password_set
from annotator.people.tokens import LIFETIMES
from core.access import Role
from labeling.studio.models import LabelingPreferences


class PreferencesForm(forms.Form):
    """How pages look."""

    theme = forms.ChoiceField(choices=Theme.choices, label="Colors")
    time_zone = forms.ChoiceField(help_text="Pages show times in this zone.", label="Time zone")

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data, initial={"theme": user.theme, "time_zone": user.time_zone})
        names = dict.fromkeys([*time_zones(), user.time_zone])
        self.fields["time_zone"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]


class MailForm(forms.Form):
    """Whether one gets e-mails, and where."""

    email = forms.EmailField(required=False, label="E-mail address", max_length=254)
    mails = forms.BooleanField(
        required=False, label="Write to me when a query is assigned or sent back to me"
    )

    def __init__(self, user: User, data: Any = None) -> None:
        stored = LabelingPreferences.objects.filter(user=user).first()
        initial = {"email": user.email, "mails": stored is None or stored.mails}
        super().__init__(data, initial=initial, auto_id="mail-%s")


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(
        max_length=ApiToken._meta.get_field("name").max_length,
        help_text="What it is for, such as “laptop”.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    days = forms.TypedChoiceField(
        coerce=int,
        choices=[(days, f"After {days} days") for days in LIFETIMES],
        initial=LIFETIMES[1],
        label="Expires",
    )


class RoleForm(forms.Form):
    """What a person may do."""

    role = forms.ChoiceField(choices=Role.choices, initial=Role.ANNOTATOR)


class InviteForm(RoleForm):
    """A new person."""

    username = forms.CharField(
        max_length=150,
        label="User name",
        help_text="Letters, digits and @ . + - _",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )


class FirstAdminForm(forms.Form):
    """The first admin: a name and a password."""

    username = InviteForm.base_fields["username"]
    password = forms.CharField(
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}), strip=False
    )
    again = forms.CharField(
        label="Password again",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        strip=False,
    )

    def clean_again(self) -> str:
        """Both passwords are alike."""
        if self.cleaned_data["again"] != self.cleaned_data.get("password"):
            raise forms.ValidationError("The two passwords differ.")
        return str(self.cleaned_data["again"])


class NewPasswordForm(SetPasswordForm):  # type: ignore[type-arg]
    """A password of one's own, after an admin's link."""

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.fields["new_password1"].help_text = "At least 8 characters, and not only digits."
        self.fields["new_password2"].label = "New password, once more"
        self.fields["new_password2"].help_text = ""

    def save(self, commit: bool = True) -> User:
        """Store it by the service of all ways to change a password."""
        user: User = self.user
        password_set(user=user, password=self.cleaned_data["new_password1"])
        return user


class PasswordForm(NewPasswordForm, PasswordChangeForm):
    """Another password of one's own."""
