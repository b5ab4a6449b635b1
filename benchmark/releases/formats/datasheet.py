"""DATASHEET.md: the questions of "Datasheets for Datasets", answered from the data; and, where
queries were completed with something left open, left_open.csv (left_open_val.csv of the validation
split): what was left open of each, and why it was completed all the same.

Questions: T. Gebru et al., "Datasheets for Datasets", Communications of the ACM 64 (12), 2021,
without those of each section that only ask for other comments. What the data can't answer is left
to the maintainers, in words that can be searched for. Where the labels of the test split are
hidden, every figure of labels is of the validation split; a reviewer's reason may tell labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmark.releases.formats.base import Access, Format, Pictures, WrittenFile
from benchmark.releases.formats.datasheet_collection import collection, preprocessing
from benchmark.releases.formats.datasheet_composition import composition
from benchmark.releases.formats.datasheet_facts import Facts, facts_of
from benchmark.releases.formats.markdown import plain
from benchmark.releases.formats.writing import spreadsheet_text, text_file, write_csv
from benchmark.releases.snapshot.snapshot import Snapshot

FILE_NAME: Final = "DATASHEET.md"
TO_BE_WRITTEN: Final = "*To be written by the maintainers.*"


def write(snapshot: Snapshot, directory: Path, pictures: Pictures) -> list[WrittenFile]:
    """Write the datasheet, and the lists of what was left open where anything was."""
    facts = facts_of(snapshot)
    header = facts.header
    who = f" by {plain(header.made_by)}" if header.made_by else ""
    origin = "imported" if header.origin == "imported" else "made"
    with text_file(directory, FILE_NAME) as file:
        file.write(
            f"# Datasheet of {plain(header.name)}, version {header.version}\n\n"
            f"The release was {origin} on {header.made_at[:10]}{who} with "
            f"{plain(header.software)}. This sheet answers the questions of [Datasheets for "
            "Datasets](https://doi.org/10.1145/3458723) (Gebru et al., 2021); its figures are "
            "counted from the release.\n"
        )
        if header.test_labels == "hidden":
            file.write(
                "\nThe labels of the test split are hidden: what follows of judgments, labels and "
                "lists is counted in the validation queries alone.\n"
            )
        for title, answers in (
            ("Motivation", _motivation(facts)),
            ("Composition", composition(facts)),
            ("Collection", collection(facts)),
            ("Preprocessing, cleaning, labelling", preprocessing(facts)),
            ("Uses", _uses(facts)),
            ("Distribution", _distribution(facts)),
            ("Maintenance", _maintenance(facts)),
        ):
            file.write(f"\n## {title}\n")
            file.writelines(_paragraphs(answers))
    return [WrittenFile(FILE_NAME, Access.OPEN), *_left_open(snapshot, directory)]


def _left_open(snapshot: Snapshot, directory: Path) -> list[WrittenFile]:
    files = []
    for name, access, queries in (
        ("left_open.csv", Access.LABELS, snapshot.queries),
        ("left_open_val.csv", Access.OPEN, snapshot.queries_of("val")),
    ):
        lines = [
            (query.query_id, query.left_open, spreadsheet_text(query.completion_reason))
            for query in queries.values()
            if query.left_open
        ]
        if lines:
            header = ("query_id", "left_open", "reason")
            files.append(write_csv(directory, name, access, header, lines))
    return files


def _paragraphs(answers: Sequence[tuple[str, str]]) -> list[str]:
    return [f"\n**{question}**\n\n{answer or TO_BE_WRITTEN}\n" for question, answer in answers]


def _motivation(facts: Facts) -> list[tuple[str, str]]:
    return [
        (
            "For what purpose was the dataset created? Was there a specific task in mind?",
            "To measure text-to-image retrieval: given a query in words, put the images of a "
            "collection in order so that those that show it come first. "
            f"What the queries are meant to stand for: {TO_BE_WRITTEN.lower()}",
        ),
        ("Who created the dataset and on behalf of which entity?", ""),
        ("Who funded the creation of the dataset?", ""),
    ]


def _uses(facts: Facts) -> list[tuple[str, str]]:
    limits = [
        "The test split's labels are for measuring. A method that was trained or tuned on them "
        "can't be compared with others.",
    ]
    if facts.images.with_place:
        limits.append(
            "Images come from where people took them, so places that are rarely photographed are "
            "rare here, and neither the number of relevant images nor their places tell how often "
            "something occurs in nature."
        )
    return [
        ("Has the dataset been used for any tasks already?", ""),
        ("Is there a repository that links to papers or systems that use the dataset?", ""),
        (
            "What (other) tasks could the dataset be used for?",
            "Re-ranking of fixed lists, tests of classifiers on what the queries ask for, and, by "
            "the Darwin Core files, study of what the queries ask for over space and time.",
        ),
        (
            "Is there anything about the composition or the collection that might impact future "
            "uses?",
            " ".join(limits),
        ),
        ("Are there tasks for which the dataset should not be used?", ""),
    ]


def _distribution(facts: Facts) -> list[tuple[str, str]]:
    header = facts.header
    pictures = (
        "Pictures are part of the Hugging Face folder where their licence allows copies; the "
        "others are listed in huggingface/refused\\_images.csv."
        if header.include_images
        else "The pictures themselves are not part of it."
    )
    sheets = (
        "attribution.csv and refused\\_images.csv are"
        if header.include_images
        else "attribution.csv is"
    )
    return [
        ("Will the dataset be distributed to third parties?", ""),
        (
            "How will the dataset be distributed?",
            "As files, each with its SHA-256 in the release's list: INQUIRE's CSV, INQUIRE-Rerank, "
            "TREC topics and qrels, a Hugging Face folder (Parquet), COCO JSON, Darwin Core, and "
            f"this sheet. {pictures} Texts in CSV files are verbatim, so a spreadsheet may take "
            "one that begins with =, +, - or @ for a formula: import the columns as text. "
            f"{sheets} made to be opened that way: an apostrophe is before such texts there.",
        ),
        ("When will the dataset be distributed?", ""),
        (
            "Will the dataset be distributed under a copyright or other licence, or under terms of "
            "use?",
            "Of the images, each has its own, see above and attribution.csv. Of the queries and "
            f"labels: {TO_BE_WRITTEN.lower()}",
        ),
        (
            "Have any third parties imposed restrictions on the data associated with the "
            "instances?",
            "The rights holders of the images by their licences; see the table of licences under "
            "Composition.",
        ),
        ("Do any export controls or other regulatory restrictions apply?", ""),
    ]


def _maintenance(facts: Facts) -> list[tuple[str, str]]:
    name, version = plain(facts.header.name), facts.header.version
    return [
        ("Who will be supporting, hosting and maintaining the dataset?", ""),
        ("How can the owner, curator or manager be contacted?", ""),
        (
            "Is there an erratum?",
            "A release is never changed. What was corrected stands in the next version's list of "
            "differences.",
        ),
        (
            "Will the dataset be updated?",
            f"This is version {version} of {name}. A change would be a new version. Whether there "
            f"will be one: {TO_BE_WRITTEN.lower()}",
        ),
        ("Are there limits on the retention of data that relates to people?", ""),
        (
            "Will older versions continue to be supported?",
            "Older releases keep their files and checksums, and runs can be scored on them.",
        ),
        ("Is there a mechanism for others to extend or contribute to the dataset?", ""),
    ]


FORMAT = Format(
    key="datasheet",
    title="Datasheet",
    about="The questions of Datasheets for Datasets, answered from the data.",
    write=write,
)
