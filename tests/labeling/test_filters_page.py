"""The filters' part of the labeling page."""

from __future__ import annotations

import pytest

from tests.labeling.conftest import make_images

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("hidden", [False, True])
def test_no_filter_by_species_where_names_are_hidden(clients, open_query, settings, hidden):
    settings.HIDE_SPECIES_NAMES = hidden
    make_images(3)
    query = open_query()
    page = clients["annotator"].get(f"/queries/{query.pk}/label/").content
    assert (b"data-filters-species" in page) is not hidden
    assert b"data-filters-months" in page
    assert b"data-filters-species" in clients["reviewer"].get(f"/queries/{query.pk}/label/").content


def test_the_map_is_a_drawing_of_this_site(clients, open_query):
    make_images(3)
    page = clients["annotator"].get(f"/queries/{open_query().pk}/label/").content.decode()
    assert 'data-land="/static/img/world.svg#land"' in page
