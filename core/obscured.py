"""What tells that a source may have blurred a location."""

from __future__ import annotations

import re
from typing import Final

#: iNaturalist blurs locations to cells of 0.2 degrees, about 28 km across.
BLURRED_METERS: Final = (22_000, 32_000)
WITHHELD_WORDS: Final = (
    "coord|koord|locat|locali|place|obscur|georef|gps|standort|fundort|ubicaci|lieu"
)
"""A regular expression, for Python and SQL: what is withheld, in lower case, concerns the location
where it holds one of these.
"""


def may_be_obscured(*, withheld: str, generalized: bool, uncertainty: float) -> bool:
    """Whether Darwin Core's informationWithheld, that there are dataGeneralizations, or an
    uncertainty in meters says that a location may be blurred.
    """
    least, most = BLURRED_METERS
    if generalized or least <= uncertainty <= most:
        return True
    return bool(withheld) and re.search(WITHHELD_WORDS, withheld, re.IGNORECASE) is not None
