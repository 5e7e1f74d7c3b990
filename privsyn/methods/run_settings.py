"""RunSettings: what a run reads of the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from privsyn.methods.methods import Method
    from privsyn.progress import Progress
    from privsyn.table.database.database import Database
    from privsyn.table.schema.important import Sets


class RunSettings(Protocol):
    """What a run reads of `privsyn.settings.Settings`, which says what each is."""

    @property
    def epsilon(self) -> float | None: ...  # noqa: D102
    @property
    def delta(self) -> float: ...  # noqa: D102
    @property
    def promise(self) -> tuple[float, float]: ...  # noqa: D102
    @property
    def database(self) -> Database: ...  # noqa: D102
    @property
    def unit(self) -> str | None: ...  # noqa: D102
    @property
    def rows_per_unit(self) -> int | None: ...  # noqa: D102
    @property
    def most_rows(self) -> int: ...  # noqa: D102
    @property
    def nullable(self) -> bool: ...  # noqa: D102
    @property
    def target(self) -> str | None: ...  # noqa: D102
    @property
    def matters_most(self) -> Sets: ...  # noqa: D102
    @property
    def totals(self) -> object: ...  # noqa: D102
    @property
    def memory(self) -> int | str: ...  # noqa: D102
    @property
    def seed(self) -> int | None: ...  # noqa: D102
    @property
    def method(self) -> str: ...  # noqa: D102
    @property
    def algorithm(self) -> Method: ...  # noqa: D102
    @property
    def progress(self) -> Progress | None: ...  # noqa: D102
    @property
    def agreed(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def requests(self) -> dict[str, object]: ...  # noqa: D102
