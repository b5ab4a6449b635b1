"""What a certificate says, case by case."""

import pytest

from labeling.certificates.bounds import AuditRound
from labeling.certificates.sentences import certificate_sentences

pytestmark = pytest.mark.pure


def test_the_sentence_of_300_draws():
    rounds = [AuditRound(30, 4500, 300, 0)]
    assert certificate_sentences(rounds, found=30, release_draws=45) == (
        "Found 30. Of 4,500 unjudged images 300, drawn at random, were judged; none is relevant. "
        "With 95 % confidence at most 43 are missing from this pool: recall is at least 41 %. "
        "About 2,140 more without a hit would certify 90 %; 45 are enough for the release."
    )


@pytest.mark.parametrize(
    ("rounds", "found", "words"),
    [
        (
            [AuditRound(30, 4500, 0, 0)],
            30,
            "4,500 images are unjudged; none is drawn yet. About 2,440 more without a hit would "
            "certify 90 %.",
        ),
        (
            [AuditRound(30, 200, 40, 1)],
            31,
            "Of 200 unjudged images 40, drawn at random, were judged; 1 is relevant. With 95 % "
            "confidence at most 33 are missing from this pool: recall is at least 48 %. 119 more "
            "without a hit would certify 90 %.",
        ),
        (
            [AuditRound(30, 4500, 200, 1), AuditRound(34, 4100, 300, 0)],
            34,
            "Of 4,500 unjudged images 500, drawn at random in 2 rounds, were judged; 1 is "
            "relevant. ",
        ),
        (
            [AuditRound(30, 4500, 2438, 0)],
            30,
            "at most 3 are missing from this pool: recall is at least 90 %. 90 % is certified.",
        ),
        ([AuditRound(30, 200, 200, 0)], 30, "All images of this pool are judged: complete."),
        (
            [AuditRound(30, 200, 200, 1)],
            30,
            "All images of this pool were drawn or judged; at most 1 can be missing.",
        ),
        (
            [AuditRound(30, 4500, 4400, 0)],
            45,
            "Up to 85 can still be missing from this pool. 80 more without a hit would certify ",
        ),
        ([AuditRound(3, 9, 2, 0)], 3, "Only judging all that are left would show 90 %."),
    ],
)
def test_cases(rounds, found, words):
    said = certificate_sentences(rounds, found=found)
    assert said.startswith(f"Found {found}. ")
    assert words in said


def test_none_found():
    bound = certificate_sentences([AuditRound(0, 4500, 300, 0)], found=0)
    assert bound.startswith("Found none. Of 4,500 unjudged images 300, drawn at random, were ")
    assert bound.endswith(
        "With 95 % confidence at most 43 are relevant in this pool. About 4,020 more without a hit "
        "would certify that none is relevant."
    )
    sure = certificate_sentences([AuditRound(0, 4500, 4400, 0)], found=0)
    assert sure.endswith("With 95 % confidence none is relevant in this pool.")
