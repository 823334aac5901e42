"""Takes the names that give a text's class away out of its sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from peekbench_docstrings.recipes import Recipe

TELLING_SHARE = 2 / 3  # of the docstrings with a module's name that are of its class; below, it is everybody's word
# Before one of these a name was the noun itself, and the sentence is nothing without it; before others, a qualifier.
FUNCTION_WORDS = frozenset(
    {
        "a", "after", "again", "against", "all", "along", "also", "among", "an", "and", "any", "are", "around", "as",
        "at", "be", "because", "been", "before", "being", "both", "but", "by", "can", "cannot", "could", "did", "do",
        "does", "during", "each", "either", "else", "every", "for", "from", "had", "has", "have", "here", "how", "if",
        "in", "instead", "into", "is", "it", "its", "just", "like", "may", "might", "must", "no", "nor", "not", "of",
        "off", "on", "once", "one", "only", "onto", "or", "out", "over", "per", "rather", "same", "shall", "should",
        "since", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they",
        "this", "those", "through", "thus", "to", "together", "too", "two", "under", "unless", "until", "up", "upon",
        "using", "versus", "very", "via", "was", "we", "were", "what", "when", "where", "whether", "which", "while",
        "whose", "will", "with", "within", "without", "would", "yet", "you", "your",
    }
)  # fmt: skip
PATH = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(?:\.[A-Za-z_]\w*)*\.([A-Za-z_]\w*)")
PARTICIPLE = re.compile(r"(?:ing|ed)$")
MODULE = re.compile(r"(?:sub)?(?:module|package)s?")
NAME = "\1"  # stands for the path of a module


def words(text: str) -> set[str]:
    """Identifiers and words in lower case."""
    return set(re.findall(r"\w+", text.lower()))


def telling_names(recipe: Recipe, docstrings: Iterable[tuple[int, Sequence[str]]]) -> frozenset[str]:
    """Names of the recipe's modules that give their class away.

    Parameters
    ----------
    docstrings
        Label and sentences of each.
    """
    homes = recipe.homes()
    counts = {name: Counter[int]() for name in homes}
    for label, sentences in docstrings:
        for name in words(" ".join(sentences)) & homes.keys():
            counts[name][label] += 1
    return frozenset(
        name
        for name, count in counts.items()
        if max(count[label] for label in homes[name]) >= TELLING_SHARE * count.total()
    )


def without_names(sentence: str, names: Set[str], modules: Mapping[str, object], roots: Set[str]) -> str:
    """The sentence without `names`, or nothing where a name is more to it than a qualifier.

    Parameters
    ----------
    names
        Names to take out, in lower case; upper-case forms go too.
    modules
        Names to take out where they are called a module, or stand at the end of a dotted path.
    roots
        First parts of the dotted paths of which only the last part is kept: numpy.ma.masked becomes masked.
    """

    def last_part(path: re.Match[str]) -> str:
        if path[1] not in roots or path[2] == "py":
            return path[0]
        return NAME if path[2] in modules else path[2]

    sentence = PATH.sub(last_part, sentence)
    kept: list[str] = []
    following: Sequence[str] = sentence.split(" ")
    while following:
        word, *following = following
        next_word = following[0].strip("\"'(),.;:!?[]").lower() if following else ""
        is_module = word.lower() in modules and MODULE.fullmatch(next_word)
        if not is_module and NAME not in word and names.isdisjoint(words(word)):
            kept.append(word)
            continue
        stands_alone = word == NAME or word.lower() in modules  # without punctuation or a hyphen
        qualifies = next_word[:1].isalpha() and next_word not in FUNCTION_WORDS and not PARTICIPLE.search(next_word)
        if not (kept and stands_alone and qualifies):  # what opens a sentence may be its verb
            return ""
        if kept[-1].lower() in ("a", "an"):
            kept[-1] = kept[-1][0] + "n" * (next_word[0] in "aeiou")
    return " ".join(kept)
