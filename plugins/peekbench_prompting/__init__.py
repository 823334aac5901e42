"""Language models that are asked by prompts, and what they have seen before."""

from __future__ import annotations

from peekbench import AuditEntry, hookimpl
from peekbench_prompting.exchangeability import Exchangeability, exchangeability, pin, prefetch


@hookimpl
def peekbench_audits() -> list[AuditEntry]:
    return [
        AuditEntry(
            name="exchangeability",
            options=Exchangeability,
            audit=exchangeability,
            summary="does a language model prefer the published order of the texts, as if it had seen them?",
            pin=pin,
            prefetch=prefetch,
        )
    ]
