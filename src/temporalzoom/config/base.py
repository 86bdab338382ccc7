"""What every section of the configuration is: unknown keys are errors, values never change after loading."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
# More than anybody needs, less than what a machine never comes back from.
Count = Annotated[int, Field(ge=1, le=10**8)]
FromZero = Annotated[int, Field(ge=0, le=10**8)]
Layers = Annotated[int, Field(ge=1, le=64)]
Width = Annotated[int, Field(ge=1, le=2**14)]  # channels, or heads
Reach = Annotated[int, Field(ge=1, le=2**16)]  # positions
Length = Annotated[int, Field(ge=1, le=2**20)]  # positions, or rows
Precision = Literal["float32", "bfloat16", "float16"]
Device = Literal["auto", "cpu", "cuda", "mps"]


class Section(BaseModel):
    """Base of every part of the tree. The text below a field is its line in docs/configuration.md."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    @field_validator("*", mode="before")
    @classmethod
    def _nothing_below(cls, value: Any, info: ValidationInfo) -> Any:
        """`training:` with nothing below it, as when all its keys are commented out, is a section of defaults."""
        is_section = info.field_name is not None and sections_of(cls.model_fields[info.field_name])
        return {} if value is None and is_section else value


def sections_of(field: FieldInfo) -> tuple[type[Section], ...]:
    """The classes that a field's value may have if it is a section; empty for a single setting."""
    found: list[type[Section]] = []

    def visit(annotation: Any) -> None:
        if isinstance(annotation, type) and issubclass(annotation, Section):
            found.append(annotation)
            return
        for part in getattr(annotation, "__args__", ()):
            visit(part)

    visit(field.annotation)
    return tuple(found)
