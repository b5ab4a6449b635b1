"""Django's classes that only its type stubs make generic, to be written `ModelAdmin[Image]`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin, TabularInline
    from django.core.paginator import Paginator
    from django.forms import ModelChoiceField, ModelForm
else:
    from django import forms
    from django.contrib import admin
    from django.core import paginator

    def _generic(of):
        names = {"__module__": __name__, "__class_getitem__": classmethod(lambda cls, _: cls)}
        return type(of)(of.__name__, (of,), names)

    ModelAdmin = _generic(admin.ModelAdmin)
    TabularInline = _generic(admin.TabularInline)
    Paginator = _generic(paginator.Paginator)
    ModelChoiceField = _generic(forms.ModelChoiceField)
    ModelForm = _generic(forms.ModelForm)

__all__ = ["ModelAdmin", "ModelChoiceField", "ModelForm", "Paginator", "TabularInline"]
