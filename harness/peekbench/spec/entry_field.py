"""The field of a component with the entry of a plugin that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar, overload

from peekbench.errors import SpecError
from peekbench.plugins import registry
from peekbench.plugins.entries import (
    AnalyzerEntry,
    AuditEntry,
    DataSourceEntry,
    ExecutorEntry,
    MethodEntry,
    ObserverEntry,
)
from peekbench.plugins.hookspecs import PluginKind, kind_of
from peekbench.plugins.local_code import GIVE_SPEC, is_refused
from peekbench.plugins.protocols import Options
from peekbench.spec.options import StoredOptions

if TYPE_CHECKING:
    from typing import Self

NamedEntry: TypeAlias = DataSourceEntry | MethodEntry | AnalyzerEntry | AuditEntry | ExecutorEntry | ObserverEntry
EntryT = TypeVar("EntryT", bound=NamedEntry)


class NamesEntry(Protocol):
    """A component, as far as it names an entry."""

    @property
    def use(self) -> str:
        """Name of the entry."""
        ...

    @property
    def options(self) -> Options:
        """Options of the entry."""
        ...


class EntryField(Generic[EntryT]):
    """Field of a component with the entry that it names; of the class, the field itself.

    Parameters
    ----------
    entry_type
        Class of the entries that the component can name.
    """

    def __init__(self, entry_type: type[EntryT]) -> None:
        self._entry_type = entry_type

    @overload
    def __get__(self, component: None, owner: type) -> Self: ...

    @overload
    def __get__(self, component: NamesEntry, owner: type) -> EntryT: ...

    def __get__(self, component: NamesEntry | None, owner: type) -> Self | EntryT:
        """Return the entry that the component names.

        Raises
        ------
        SpecError
            If the component is from a store, so that its options are not those of an entry.
        """
        if component is None:
            return self
        if isinstance(component.options, StoredOptions):
            if is_refused(component.use):
                raise SpecError(f"{component.use} is code that only a store names, which is not imported; {GIVE_SPEC}")
            raise SpecError(
                f"{component.use}: the options were read from a store and were not validated; load the spec with "
                "`peekbench.load_spec` to use its plugins"
            )
        return self.find(component.use)

    @property
    def kind(self) -> PluginKind:
        """Kind of entry that the component names."""
        return kind_of(self._entry_type)

    def find(self, use: str) -> EntryT:
        """Return the entry of a name.

        Raises
        ------
        PluginError
            If the plugin cannot be loaded, or has no such entry.
        """
        return registry.find(use, self._entry_type)
