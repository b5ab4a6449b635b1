"""The terms of the field that pages use, each with one sentence for a field biologist.

`{% term "streak" %}` shows the sentence beside the word, and the Help page lists all of them.
Extras add theirs in `AppConfig.ready`.
"""

from __future__ import annotations

TERMS: dict[str, str] = {
    "audit": (
        "A check of images that nobody has labeled yet, drawn at random, which shows how many "
        "relevant ones may still be missing."
    ),
    "bpref": (
        "A score that looks only at labeled images: how rarely one that is not relevant is ranked "
        "before one that is."
    ),
    "candidate list": (
        "The images of a query in the order in which you label them, those that the model finds "
        "most like the text first; once made, the order never changes."
    ),
    "certificate": (
        "A statement, computed from an audit, that at least so many of the relevant images were "
        "found, and how sure that is."
    ),
    "embedding": (
        "How the model sees an image: a list of numbers that lies close to the numbers of a text "
        "that describes the image."
    ),
    "exhausted": "Every image of the candidate list is labeled, so nothing is left to label.",
    "fingerprint": (
        "A short code computed from all the data, which changes as soon as anything in them "
        "changes."
    ),
    "fixed lists": (
        "The same first 100 images of each query for everybody: a method that re-ranks puts only "
        "these in a new order."
    ),
    "iconic group": (
        "The large group of organisms that a query is about, such as birds, insects or plants; "
        "scores are also shown for each group."
    ),
    "Holm": (
        "A correction for making many comparisons at once, so that chance alone seldom makes two "
        "methods look different."
    ),
    "qrels": (
        "A text file with one line for each label: the query, the image, and whether the image is "
        "relevant."
    ),
    "RBP residual": (
        "How much a score could still rise if every image without a label turned out to be "
        "relevant."
    ),
    "seed of a draw": (
        "A number from which a draw by chance begins: the same queries with the same number give "
        "the same draw."
    ),
    "seeds of an audit": (
        "Images that are known to be relevant, mixed into an audit to see how many of them the "
        "auditor recognizes."
    ),
    "split": (
        "The part that a query belongs to: validation, for developing methods, or test, for "
        "comparing them at the end."
    ),
    "streak": (
        "How many images in a row you found not relevant; a long streak means that hardly any "
        "relevant image is left further down the list."
    ),
    "tag": (
        "The second half of a model's name, which says what data it was trained with; models of "
        "one name and different tags rank images differently."
    ),
    "τ-b": (
        "How alike two orders are: 1 when they are the same, 0 when they have nothing in common, "
        "and −1 when one is the reverse of the other."
    ),
}
