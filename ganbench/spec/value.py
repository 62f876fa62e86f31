"""The base of every value that is asked for: frozen, validated once, hashed by content."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ganbench.errors import ExperimentError

Count = Annotated[int, Field(strict=True, ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]


def _same_in_json(arguments: dict[str, Any]) -> dict[str, Any]:
    # They are hashed, stored and read back as JSON: what comes back otherwise would be another run.
    try:
        same = json.loads(canonical_json(arguments)) == arguments
        json.dumps(arguments, ensure_ascii=False).encode()  # fails on half a surrogate pair
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise ValueError(
            "arguments are text, finite numbers, true, false, null, lists and mappings of these with text as keys; "
            f"put quotes around a date; got {arguments!a:.200}"
        )
    return arguments


Arguments = Annotated[dict[str, Any], AfterValidator(_same_in_json)]


class Value(BaseModel):
    """A frozen value. Unknown keys are errors that name the nearest known key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for key in given:
                if key not in known:
                    raise ValueError(unknown("key", key, known))
        return given


def unknown(what: str, given: object, known: Iterable[str]) -> str:
    """One line that names an unknown word, the nearest known one, and all known ones."""
    names = sorted(known)
    nearest = difflib.get_close_matches(str(given), names, n=1, cutoff=0.5)
    hint = f"did you mean '{nearest[0]}'? " if nearest else ""
    return f"unknown {what} '{given}': {hint}known are {', '.join(names)}"


def canonical_json(plain: object) -> str:
    """JSON that is the same for equal values: keys sorted, no white space, no NaN.

    Raises:
        ValueError: a float is not finite.
    """
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_hash(plain: object, length: int = 16) -> str:
    """The first `length` hexadecimal digits of the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(plain).encode()).hexdigest()[:length]


def explain(error: ValidationError, where: str) -> ExperimentError:
    """Turn a validation error into one line for each thing that is wrong, without a traceback."""
    lines = []
    for item in error.errors(include_url=False):
        path = ".".join(str(part) for part in item["loc"] if not str(part).startswith("function-"))
        if item["type"] == "value_error":
            text = str(item["ctx"]["error"])
        else:
            message = item["msg"]
            text = f"{message[0].lower()}{message[1:]}, got {item['input']!r}"
        line = f"{path}: {text}" if path else text
        if line not in lines:
            lines.append(line)
    return ExperimentError(f"{where}: " + "; ".join(lines))
