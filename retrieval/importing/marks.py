"""What an admin has said of a data set, applied to records and to images that are there."""

from __future__ import annotations

from typing import Final

from retrieval.corpus.models import DatasetMark
from retrieval.importing.fields import LICENSE_TEXT
from retrieval.importing.records import ImageRecord

EARLIER: Final = " (read earlier from the source)"


def marked(record: ImageRecord, mark: DatasetMark) -> ImageRecord:
    """Return a record as its data set's mark has it: without a license, whose words stay in the
    text, or with an obscured location.
    """
    if mark.license_unknown and (record.license or record.license_url):
        # A text that is the same isn't said twice.
        said = dict.fromkeys((record.license_text, record.license, record.license_url))
        text = ", ".join(filter(None, said))[:LICENSE_TEXT]
        record = record._replace(license="", license_url="", license_text=text)
    if mark.locations_obscured and record.latitude is not None:
        record = record._replace(coordinates_obscured=True)
    return record


#: What `marked` does, for images `i` that were stored before the mark.
LICENSE_UNKNOWN: Final = f"""
UPDATE retrieval_image i
   SET license_text = left(concat_ws(', ',
           nullif(nullif(nullif(license_text, ''), license), license_url),
           nullif(license, ''), nullif(license_url, ''))
           || CASE WHEN license_text = '' THEN '{EARLIER}' ELSE '' END, {LICENSE_TEXT}),
       license = '', license_url = ''
 WHERE id = ANY(%s) AND (license <> '' OR license_url <> '')
"""
LOCATIONS_OBSCURED: Final = """
UPDATE retrieval_image i SET coordinates_obscured = true
 WHERE id = ANY(%s) AND latitude IS NOT NULL AND NOT coordinates_obscured
"""
