"""Maps of the world: the dots of cells."""

import pytest

from core.world_map import dots

pytestmark = pytest.mark.pure


def test_dots_of_one_size_are_one_path_from_each_to_the_next():
    drawn = dots([(42, 9, 100), (42, 12, 1), (45, 9, 1)], label="Where <they> are")
    assert drawn.count("<path") == 2
    assert '<path stroke-width="9.00" d="m10.5 -43.5h0"/>' in drawn
    # North is up, so the second of them is the one at 43.5 degrees.
    assert '<path stroke-width="2.20" d="m10.5 -46.5h0m3 3h0"/>' in drawn
    assert 'aria-label="Where &lt;they&gt; are"' in drawn
