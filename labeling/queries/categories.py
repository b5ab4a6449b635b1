"""INQUIRE's vocabulary for queries: categories, iconic groups and splits.

Source: Vendrow et al., "INQUIRE: A Natural World Text-to-Image Retrieval Benchmark", NeurIPS 2024,
section 3, spelled as in the released query files (capital letters included).
"""

from typing import Final

#: Category -> supercategory, in the order in which forms and tables list them.
CATEGORIES: Final[dict[str, str]] = {
    "Health and Disease": "Appearance",
    "Life Cycle and Development": "Appearance",
    "Sex identification": "Appearance",
    "Tracking and Identification": "Appearance",
    "Unique appearances or morphs": "Appearance",
    "Cooperative and Social Behaviors": "Behavior",
    "Defensive and Survival Behaviors": "Behavior",
    "Feeding and Hydration": "Behavior",
    "Mating, Courtship, Reproduction": "Behavior",
    "Miscellaneous Behavior": "Behavior",
    "Animal Structures and Habitats": "Context",
    "Collected Specimens": "Context",
    "Human Impact": "Context",
    "Miscellaneous Context": "Context",
    "Parasitism and Symbiosis": "Context",
    "Species ID": "Species",
}

SUPERCATEGORIES: Final[tuple[str, ...]] = ("Appearance", "Behavior", "Context", "Species")

#: A query may also have none (the empty string), as two of INQUIRE's queries do.
ICONIC_GROUPS: Final[tuple[str, ...]] = (
    "Animalia",
    "Amphibians",
    "Arachnids",
    "Birds",
    "Combo",
    "Fish",
    "Fungi",
    "Insects",
    "Mammals",
    "Mollusks",
    "Plants",
    "Reptiles",
)

SPLITS: Final[tuple[str, ...]] = ("val", "test")


def supercategory_of(category: str) -> str:
    """The supercategory that holds `category`; ValueError when INQUIRE has no such category."""
    try:
        return CATEGORIES[category]
    except KeyError:
        raise ValueError(f"unknown category: {category!r}") from None
