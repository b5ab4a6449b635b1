"""Small spreadsheets, made without a library: `.xlsx` and `.ods` with the cells that are given."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Final
from xml.sax.saxutils import escape

Cell = str | float | bool | date | None
Rows = Sequence[Sequence[Cell]]
FORMULA: Final = "="
"""Begins a text that is written as a formula without a computed value; `#…` is an error's cell."""

_MAIN: Final = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_DOCUMENT: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def zipped(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def xlsx(sheets: Mapping[str, Rows], hidden: Sequence[str] = ()) -> bytes:
    """A workbook of these sheets."""
    parts = {f"xl/worksheets/sheet{n}.xml": _sheet(r) for n, r in enumerate(sheets.values(), 1)}
    return xlsx_of_parts(list(sheets), parts, hidden)


def xlsx_of_parts(
    names: Sequence[str], parts: Mapping[str, str], hidden: Sequence[str] = ()
) -> bytes:
    """A workbook whose sheets are these XML texts."""
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"'
        f"{' state=' + chr(34) + 'hidden' + chr(34) if name in hidden else ''}/>"
        for n, name in enumerate(names, 1)
    )
    kind = f"{_DOCUMENT}/worksheet"
    related = "".join(
        f'<Relationship Id="rId{n}" Type="{kind}" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(names) + 1)
    )
    related += f'<Relationship Id="rId0" Type="{_DOCUMENT}/styles" Target="styles.xml"/>'
    overrides = "".join(
        f'<Override PartName="/{part}" ContentType="{_TYPES}.worksheet+xml"/>' for part in parts
    )
    return zipped(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
            'content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-'
            'package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="'
            f'{_TYPES}.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="'
            f'{_TYPES}.styles+xml"/>{overrides}</Types>',
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="rId1" Type="'
            f'{_DOCUMENT}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_DOCUMENT}"><sheets>{listed}</sheets>'
            "</workbook>",
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}">{related}'
            "</Relationships>",
            # The second style is a date.
            "xl/styles.xml": f'<styleSheet {_MAIN}><cellXfs count="2"><xf numFmtId="0"/>'
            '<xf numFmtId="22" applyNumberFormat="1"/></cellXfs></styleSheet>',
            **parts,
        }
    )


def sheet_xml(rows: str, more: str = "") -> str:
    """A sheet's XML around its rows."""
    return f"<worksheet {_MAIN}>{more}<sheetData>{rows}</sheetData></worksheet>"


def _sheet(rows: Rows) -> str:
    return sheet_xml(
        "".join(
            f'<row r="{n}">'
            + "".join(_cell(cell, f"{_letters(at)}{n}") for at, cell in enumerate(row))
            + "</row>"
            for n, row in enumerate(rows, 1)
            if row
        )
    )


def _letters(at: int) -> str:
    return (_letters(at // 26 - 1) if at >= 26 else "") + chr(ord("A") + at % 26)


def _cell(cell: Cell, at: str) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return f'<c r="{at}" t="b"><v>{int(cell)}</v></c>'
        case date():
            moment = cell if isinstance(cell, datetime) else datetime(*cell.timetuple()[:3])  # noqa: DTZ001
            days = (moment - datetime(1899, 12, 30)).total_seconds() / 86_400  # noqa: DTZ001
            return f'<c r="{at}" s="1"><v>{days}</v></c>'
        case int() | float():
            return f'<c r="{at}"><v>{cell}</v></c>'
    if cell.startswith(FORMULA):
        return f'<c r="{at}"><f>{escape(cell[1:])}</f></c>'
    if cell.startswith("#"):
        return f'<c r="{at}" t="e"><v>{escape(cell)}</v></c>'
    return f'<c r="{at}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'


def ods(sheets: Mapping[str, Rows]) -> bytes:
    """A spreadsheet of OpenDocument, as LibreOffice writes it."""
    tables = "".join(
        f'<table:table table:name="{escape(name)}">'
        + "".join(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in r)
        # LibreOffice fills the sheet up so.
        + '<table:table-row table:number-rows-repeated="1048000"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row></table:table>'
        for name, r in sheets.items()
    )
    names = " ".join(
        f'xmlns:{one}="urn:oasis:names:tc:opendocument:xmlns:{one}:1.0"'
        for one in ("office", "table", "text", "style", "manifest")
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    return zipped(
        {
            "mimetype": kind,
            "META-INF/manifest.xml": f"<manifest:manifest {names}><manifest:file-entry "
            f'manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>',
            "content.xml": f"<office:document-content {names}><office:body><office:spreadsheet>"
            f"{tables}</office:spreadsheet></office:body></office:document-content>",
        }
    )


def _ods_cell(cell: Cell) -> str:
    match cell:
        case None:
            return "<table:table-cell/>"
        case bool():
            value = str(cell).lower()
            return f'<table:table-cell office:value-type="boolean" office:boolean-value="{value}"/>'
        case date():
            moment = cell.isoformat()
            return f'<table:table-cell office:value-type="date" office:date-value="{moment}"/>'
        case int() | float():
            return f'<table:table-cell office:value-type="float" office:value="{cell}"/>'
    return (
        '<table:table-cell office:value-type="string"><text:p>'
        f"{escape(cell)}</text:p></table:table-cell>"
    )
