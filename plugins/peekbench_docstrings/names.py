"""Remove module names that reveal the class of a text from its sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from peekbench_docstrings.recipes import Recipe

MIN_TELLING_SHARE = 2 / 3  # of the docstrings with a module's name that belong to its class; below, it is a common word
# Before one of these words a name is a noun, without which the sentence is incomplete; before others it is a qualifier.
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
MODULE_PATH = "\1"  # replaces the dotted path of a module


def find_words(text: str) -> set[str]:
    """Return the identifiers and words of a text in lower case."""
    return set(re.findall(r"\w+", text.lower()))


def find_telling_names(recipe: Recipe, docstrings: Iterable[tuple[int, Sequence[str]]]) -> frozenset[str]:
    """Return the names of modules that reveal the class of a text.

    Parameters
    ----------
    recipe
        Package and classes of the task.
    docstrings
        Label and sentences of each docstring.
    """
    classes = recipe.module_classes()
    counts = {name: Counter[int]() for name in classes}
    for label, sentences in docstrings:
        for name in find_words(" ".join(sentences)) & classes.keys():
            counts[name][label] += 1
    return frozenset(
        name
        for name, count in counts.items()
        if max(count[label] for label in classes[name]) >= MIN_TELLING_SHARE * count.total()
    )


def remove_names(sentence: str, names: Set[str], modules: Mapping[str, object], roots: Set[str]) -> str:
    """Return a sentence without names, or an empty string if a name is more than a qualifier in it.

    Parameters
    ----------
    sentence
        A sentence without markup.
    names
        Names to remove, in lower case; other cases are removed too.
    modules
        Names to remove only before the word "module" and at the end of a dotted path.
    roots
        First parts of dotted paths; only the last part of these paths is kept, so numpy.ma.masked becomes masked.
    """

    def last_part(path: re.Match[str]) -> str:
        if path[1] not in roots or path[2] == "py":
            return path[0]
        return MODULE_PATH if path[2] in modules else path[2]

    sentence = PATH.sub(last_part, sentence)
    kept: list[str] = []
    following: Sequence[str] = sentence.split(" ")
    while following:
        word, *following = following
        next_word = following[0].strip("\"'(),.;:!?[]").lower() if following else ""
        is_module = word.lower() in modules and MODULE.fullmatch(next_word)
        if not is_module and MODULE_PATH not in word and names.isdisjoint(find_words(word)):
            kept.append(word)
            continue
        stands_alone = word == MODULE_PATH or word.lower() in modules  # has no punctuation and no hyphen
        qualifies = next_word[:1].isalpha() and next_word not in FUNCTION_WORDS and not PARTICIPLE.search(next_word)
        if not (kept and stands_alone and qualifies):  # the first word of a sentence may be its verb
            return ""
        if kept[-1].lower() in ("a", "an"):
            article = kept[-1][0]
            kept[-1] = f"{article}n" if next_word[0] in "aeiou" else article
    return " ".join(kept)
