"""Changes of a query in templates."""

from django import template

from labeling.lifecycle.history import differing_words

register = template.Library()
register.filter("differing_words", differing_words)
