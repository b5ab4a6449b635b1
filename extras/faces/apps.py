"""Flagging images in which a detector finds a face."""

from django.apps import AppConfig


class FacesConfig(AppConfig):
    """Has a command alone."""

    name = "extras.faces"
