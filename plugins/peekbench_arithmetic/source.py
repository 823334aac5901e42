"""Makes the prompts of arithmetic and their answers, which are graded as numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from peekbench import DataError, Dataset, Folders
from peekbench_arithmetic import Made, Operation, Problems, Sums

TRIES = 50  # draws for each prompt, most of which may repeat earlier ones
NAMES = ("Ann", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gita", "Hugo", "Iris", "Jon", "Kim", "Leo", "Mia", "Noah", "Olga")
OBJECTS = (
    "apples", "books", "buttons", "cards", "coins", "cups", "eggs", "marbles", "pencils", "plums", "shells", "stamps",
)  # fmt: skip
CALCULATE: Mapping[Operation, Callable[[int, int], int]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
}


def sums(*, options: Sums, folders: Folders) -> Dataset:
    """Make expressions, whose values are the references.

    Parameters
    ----------
    options
        Number, difficulty and form of the prompts.
    folders
        Not used.

    Returns
    -------
    Dataset
        Different prompts. Products are calculated before sums.

    Raises
    ------
    DataError
        If there are too few different prompts.
    """

    def draw(rng: random.Random) -> tuple[str, int]:
        numbers = [_draw_number(rng, *options.digits) for _ in range(options.terms)]
        chosen = [rng.choice(options.operations) for _ in numbers[1:]]
        values, later = numbers[:1], []
        for operation, number in zip(chosen, numbers[1:], strict=True):
            if operation == "*":
                values[-1] *= number
            else:
                values.append(number)
                later.append(operation)
        total = values[0]
        for operation, value in zip(later, values[1:], strict=True):
            total = CALCULATE[operation](total, value)
        parts = [str(numbers[0])]
        for operation, number in zip(chosen, numbers[1:], strict=True):
            parts += [operation, str(number)]
        return options.template.replace("{expression}", " ".join(parts)), total

    return _make(options, draw, "more digits or terms")


def _draw_number(rng: random.Random, fewest: int, most: int) -> int:
    """Return a number with a random number of digits, each number of digits with equal probability."""
    digits = rng.randint(fewest, most)
    return rng.randint(10 ** (digits - 1) if digits > 1 else 0, 10**digits - 1)


def problems(*, options: Problems, folders: Folders) -> Dataset:
    """Make stories about a number of objects, which is asked for at the end.

    Parameters
    ----------
    options
        Number, difficulty and form of the prompts.
    folders
        Not used.

    Returns
    -------
    Dataset
        Different prompts.

    Raises
    ------
    DataError
        If there are too few different prompts.
    """

    def draw(rng: random.Random) -> tuple[str, int]:
        (name, other), things = rng.sample(NAMES, 2), rng.choice(OBJECTS)
        count = rng.randint(3, options.largest)
        parts = [f"{name} has {count} {things}."]
        for _ in range(options.steps):
            sentence, count = _tell(rng, count, name, other, things, options.largest)
            parts.append(sentence)
        parts.append(f"How many {things} does {name} have now?")
        return options.template.replace("{story}", " ".join(parts)), count

    return _make(options, draw, "more steps, or a larger `largest`")


def _tell(rng: random.Random, count: int, name: str, other: str, things: str, largest: int) -> tuple[str, int]:
    """Return a sentence about an event, and the number of objects after it, which is never negative."""
    number, bags, size = rng.randint(2, largest), rng.randint(2, 5), rng.randint(2, max(2, largest // 2))
    events = [
        (f"{other} gives {name} {number} {things}.", count + number),
        (f"{name} buys {bags} bags of {size} {things} each.", count + bags * size),
    ]
    if count >= 2:
        lost = rng.randint(1, min(count, largest))
        events.append((f"{name} gives {lost} of them to {other}.", count - lost))
        events.append((f"{name} loses {lost} of them.", count - lost))
    if count >= 2 and count % 2 == 0:
        events.append((f"{name} sells half of them.", count // 2))
    if count <= 10 * largest:
        events.append((f"Then {name} doubles the number of {things}.", 2 * count))
    return rng.choice(events)


def _make(options: Made, draw: Callable[[random.Random], tuple[str, int]], remedy: str) -> Dataset:
    """Draw different prompts. Fewer rows are the first ones of more."""
    rng = random.Random(options.seed)  # noqa: S311 - no secrets
    found: dict[str, int] = {}
    for _ in range(TRIES * options.rows):
        prompt, answer = draw(rng)
        found.setdefault(prompt, answer)
        if len(found) == options.rows:
            break
    else:
        raise DataError(
            f"arithmetic: only {len(found):,} different prompts, but rows is {options.rows:,}; allow {remedy}, or "
            "lower rows"
        )
    return Dataset(
        tuple(found),
        [str(answer) for answer in found.values()],
        kind="generation",
        grader="number",
        instruction="Calculate the result. Answer with a number only.",
        details={"license": "MIT"},
    )
