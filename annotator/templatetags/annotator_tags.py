"""The provider of log-ins, for the log-in page."""

from __future__ import annotations

from django import template

from annotator.people.oidc import provider_host

register = template.Library()
register.simple_tag(provider_host)
