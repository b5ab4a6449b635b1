"""Markdown in templates."""

from django import template

from core.markdown import markdown_html

register = template.Library()
register.filter("markdown", markdown_html)
