"""Places of a user's own code: `file.py:Name` or `package.module:Name`, and the specs that hold some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, SerializerFunctionWrapHandler, model_serializer

from ganbench.spec.value import Value, canonical_json


def is_place(text: object) -> bool:
    """Whether this names something in a file or package, rather than something shipped."""
    return isinstance(text, str) and ":" in text


def short_place(place: str) -> str:
    """The place without the folder in which its file lies: `nets/gan.py:G` -> `gan.py:G`."""
    where, colon, name = place.rpartition(":")
    return f"{where.rpartition('/')[2]}{colon}{name}"


def role_of(part: str, field: str) -> str:
    """What a place is called in messages: `generator`, `init`, `dataset`, `loss.generator`, `optimizer`."""
    if field in ("place", "name"):
        return part
    return field if part == "model" else f"{part}.{field}"


def _place(text: str) -> str:
    where, _, name = text.rpartition(":")
    if not where or not name:
        raise ValueError(f"write file.py:Name or package.module:Name, got '{text}'")
    return text


def _words(given: Any) -> Any:
    # A command line is text; YAML reads `[--img_size, 32]` as text and a number.
    if isinstance(given, list | tuple) and all(isinstance(word, str | int | float) for word in given):
        if any(isinstance(word, bool) for word in given):
            raise ValueError(f"put quotes around true and false in a command line, got {list(given)}")
        return tuple(str(word) for word in given)
    raise ValueError(f"a command line is a list of words, such as [--img_size, 32], got {given!r}")


Place = Annotated[str, AfterValidator(_place)]
Argv = Annotated[tuple[str, ...], BeforeValidator(_words)]
# File name -> SHA-256 of what it holds: an edited file is another one.
Sources = dict[str, str]


class Foreign(Value):
    """A spec that may name places of a user's own code. `PLACES`: its fields that do.

    A field `place` is called `name` in files and in what is stored.
    """

    PLACES: ClassVar[tuple[str, ...]] = ()

    def __hash__(self) -> int:
        # Arguments are mappings, which have no hash of their own.
        return hash(canonical_json(self.model_dump(mode="json")))

    @model_serializer(mode="wrap")
    def _a_place_is_its_name(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        plain = handler(self)
        return {"name": plain.pop("place"), **plain} if "place" in plain else dict(plain)

    def places(self) -> dict[str, str]:
        """Field -> place, for those that are given."""
        found = {field: getattr(self, field) for field in self.PLACES}
        return {field: place for field, place in found.items() if is_place(place)}

    def settled(self, places: Mapping[str, str], sources: Mapping[str, str]) -> Self:
        """The same with its files by absolute path, and with the hashes of what they hold."""
        return self.model_copy(update={**places, "sources": dict(sources)})
