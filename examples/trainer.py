"""Train a Hugging Face model in each fit of a design with folds, and say how much its adaptation adds to its score.

    python examples/trainer.py official.yaml bert-base-uncased

Each fit continues the pretraining of the model on the train and unlabeled texts, and then trains a classifier on the
train texts. `peekbench quickstart --official train.csv test.csv` writes the spec, whose methods are not run here. Needs
`pip install "transformers[torch]"`. With a BERT of two small layers and 24 train and test texts, this takes a minute.
"""

from __future__ import annotations

import sys
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    set_seed,
)

import peekbench as pb


def main(spec: str, name: str) -> None:
    """Print what the score of a model contains."""
    tokenizer = AutoTokenizer.from_pretrained(name)

    def encode(texts: Any) -> list[dict[str, Any]]:
        return [dict(tokenizer(text, truncation=True)) for text in texts]

    tables = []
    for drawn in pb.draw(spec):
        classes = sorted(drawn.train["label"].unique())
        labeled = encode(drawn.train["input"])
        for row, label in zip(labeled, drawn.train["label"], strict=True):
            row["labels"] = classes.index(label)
        for fit in drawn.fits:
            set_seed(drawn.seed)  # for the weights of the classifier
            with TemporaryDirectory() as folder:
                settings = TrainingArguments(
                    folder, seed=drawn.seed, save_strategy="no", report_to="none", disable_tqdm=True
                )
                source = name
                if fit.unlabeled is not None:
                    texts = encode([*drawn.train["input"], *fit.unlabeled["input"]])
                    adapting = Trainer(
                        AutoModelForMaskedLM.from_pretrained(name), settings, train_dataset=texts,
                        data_collator=DataCollatorForLanguageModeling(tokenizer),
                    )  # fmt: skip
                    adapting.train()
                    adapting.save_model(source := folder)
                classifier = Trainer(
                    AutoModelForSequenceClassification.from_pretrained(source, num_labels=len(classes)), settings,
                    train_dataset=labeled, data_collator=DataCollatorWithPadding(tokenizer),
                )  # fmt: skip
                classifier.train()
                scores = classifier.predict(encode(fit.rows["input"])).predictions
            answers = [classes[number] for number in scores.argmax(axis=1)]
            tables.append(fit.rows.assign(answer=answers).drop(columns="input"))
    print(pb.analyze(pd.concat(tables)))


if __name__ == "__main__":
    main(*sys.argv[1:])
