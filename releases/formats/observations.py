"""What is known of a photo, in terms of Darwin Core (dwc.tdwg.org/terms) and Dublin Core.

Dates are as precise as the corpus has them; basisOfRecord is HumanObservation, as for photographs
that people sent in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from releases.snapshot.licenses import license_of
from releases.snapshot.snapshot import Header, SnapshotImage

DWC: Final = "http://rs.tdwg.org/dwc/terms/"
DC: Final = "http://purl.org/dc/terms/"


def observation(image: SnapshotImage, header: Header) -> dict[str, Any]:
    """Term -> value, empty or None where it isn't known."""
    placed = image.latitude is not None and image.longitude is not None
    url = image.license_url or license_of(image.license, image.license_url).url
    return {
        "catalogNumber": image.image_id,
        "basisOfRecord": "HumanObservation",
        "occurrenceStatus": "present",
        "scientificName": image.scientific_name,
        "kingdom": image.kingdom,
        "phylum": image.phylum,
        "class": image.class_name,
        "order": image.order,
        "family": image.family,
        "genus": image.genus,
        "taxonRank": "species" if image.scientific_name else "",
        "vernacularName": image.vernacular_name,
        "eventDate": image.observed_at,
        "decimalLatitude": image.latitude,
        "decimalLongitude": image.longitude,
        "geodeticDatum": "EPSG:4326" if placed else "",
        "coordinateUncertaintyInMeters": image.location_uncertainty if placed else None,
        "license": url or image.license,
        "rightsHolder": image.rights_holder,
        "otherCatalogNumbers": f"{image.dataset}:{image.source_id}",
        "datasetName": f"{header.name} v{header.version}",
    }


def eml(header: Header, part: str, template: str, package: str) -> str:
    """eml.xml of the archive of a part ("val" or "all"), from a template beside this module."""
    facts = {
        "name": header.name,
        "version": str(header.version),
        "author": header.made_by or header.name,
        "date": header.made_at[:10],
        "which": "validation split" if part == "val" else "validation and test split",
        "consensus": header.consensus or "not known",
    }
    text = Path(__file__).with_name(template).read_text(encoding="utf-8")
    return text.format(package=package, **{key: escape(value) for key, value in facts.items()})
