"""The part of a spec that says how its report is written."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, ValidationInfo, field_validator, model_serializer

from peekbench.errors import PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import RendererEntry
from peekbench.plugins.registry import check_format
from peekbench.records.report import DEFAULT_FORMATS
from peekbench.spec.base import STORED, SpecModel


def _check_format(use: str, info: ValidationInfo) -> str:
    if info.context != STORED:
        try:
            check_format(use)
        except PluginError as error:
            raise ValueError(str(error)) from error
    return use


class ReportSpec(SpecModel):
    """Files of a report."""

    formats: tuple[Annotated[str, AfterValidator(_check_format)], ...] = DEFAULT_FORMATS
    """Files to write into `reports/<name>/`. 'cards' are Markdown files, one for each method; 'svg' and 'png' are the
    figures. Cards and figures have folders of their own. Plugins add formats, which are named `plugin.thing`."""
    allow_incomplete: bool = False
    """Analyze the complete trials if trials are missing, instead of an error. The report says so."""
    renderer: str = ""
    """Renderer of the figures, `plugin.thing`; by default the only one that is installed."""

    @field_validator("renderer")
    @classmethod
    def _check_renderer_exists(cls, renderer: str, info: ValidationInfo) -> str:
        if renderer and info.context != STORED:
            try:
                registry.find(renderer, RendererEntry)
            except PluginError as error:
                raise ValueError(str(error)) from error
        return renderer

    @model_serializer(mode="wrap")
    def _without_default_renderer(self, serialize: Any) -> dict[str, Any]:
        """Keep the stored form of specs that name no renderer."""
        dumped: dict[str, Any] = serialize(self)
        return {key: value for key, value in dumped.items() if key != "renderer" or value}
