"""Charts of pages drawn as the browser draws them, for tests."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import vl_convert

SPECIFICATION = re.compile(r'<script type="application/json">(.*?)</script>', re.S)


def specifications(html: str) -> list[dict]:
    """Those of all charts of a page or of a part of it."""
    return [json.loads(found) for found in SPECIFICATION.findall(html)]


def drawings(html: str) -> list[ET.Element]:
    """The charts of a page as SVG."""
    return [ET.fromstring(vl_convert.vegalite_to_svg(one)) for one in specifications(html)]
