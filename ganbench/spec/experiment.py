"""Experiment files: YAML in, a sweep out. The command line's options lie over the file's."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from ganbench.errors import ExperimentError
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import OWN_KEYS, RUN_KEYS
from ganbench.spec.value import unknown

_LARGEST = 1_000_000
# What the reader's constructors let through: dates that do not exist, `!!bool x`, `!!int `, endless nesting.
_ODD_VALUES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def shipped_folder() -> Path:
    """The folder of the shipped experiments: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "experiments"
    return inside if inside.is_dir() else package.parent / "experiments"


def find_experiment(name: str) -> Path:
    """The file of that path, or the shipped experiment of that name.

    Raises:
        ExperimentError: there is neither.
    """
    path = Path(name)
    try:
        if path.is_file():
            return path
    except OSError as error:
        raise ExperimentError(f"cannot read '{name}': {error.strerror}") from None
    shipped = {file.stem: file for file in sorted(shipped_folder().glob("*.yaml"))}
    # A shipped one answers to `quickstart`, `quickstart.yaml` and `experiments/quickstart.yaml`.
    if path.stem in shipped and path.parent.name in ("", "experiments") and path.suffix in ("", ".yaml"):
        return shipped[path.stem]
    if path.is_dir():
        raise ExperimentError(f"'{name}' is a folder; name a YAML file in it")
    raise ExperimentError(f"no experiment file '{name}', and {unknown('experiment', path.stem, shipped)}")


def parse_yaml(text: str, where: str) -> Any:
    """Read YAML 1.2, in which `5:1` is text and `2e-4` a number. Tags that make objects are refused.

    Raises:
        ExperimentError: the text is no YAML; the message names the line.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an anchor that is given twice is YAML, the later one counts
            return YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        line = f", line {mark.line + 1}" if mark else ""
        raise ExperimentError(f"{where}{line}: not YAML: {' '.join(problem.split())}") from None
    except _ODD_VALUES as error:
        raise ExperimentError(f"{where}: not YAML: {type(error).__name__}: {error}") from None


def read_fields(path: Path) -> dict[str, Any]:
    """The mapping in an experiment file; its name is the file's unless it gives one.

    Raises:
        ExperimentError: the file cannot be read, is no YAML or no mapping.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ExperimentError(f"cannot read '{path}': {error.strerror}") from None
    if len(raw) > _LARGEST:
        raise ExperimentError(f"'{path}' holds {len(raw)} bytes, an experiment file at most {_LARGEST}")
    try:
        fields = parse_yaml(raw.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise ExperimentError(f"'{path}' is not UTF-8 text; an experiment file is YAML") from None
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise ExperimentError(f"'{path}': an experiment file is a mapping of keys to values, such as 'ratio: 5:1'")
    return {"name": path.stem, **fields}


def override(fields: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """Lay `key=value` settings over the fields; dotted keys reach inside, values are read as YAML.

    Raises:
        ExperimentError: a setting without `=`, or an unknown key.
    """
    result: dict[str, Any] = dict(fields)
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ExperimentError(f"--set takes key=value, got '{setting}'; for example --set optimizer.g_lr=1e-4")
        head = key.partition(".")[0]
        if head not in RUN_KEYS and head not in OWN_KEYS:
            raise ExperimentError(f"--set {key}: {unknown('key', head, [*OWN_KEYS, *RUN_KEYS])}")
        result = lay(result, key, parse_yaml(text, f"--set {key}"))
    return result


def lay(fields: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """The fields with one value laid over them; a dotted key reaches inside. What was given is left as it is."""
    result = dict(fields)
    head, *path = key.split(".")
    if not path:
        result[head] = value
        return result
    node = _mapping(result.get(head))
    result[head] = node
    for part in path[:-1]:
        node[part] = _mapping(node.get(part))
        node = node[part]
    node[path[-1]] = value
    # One latent has either form; the setting replaces the other one.
    if head == "latent" and path in (["dim"], ["shape"]):
        node.pop("shape" if path == ["dim"] else "dim", None)
    return result


def _mapping(value: Any) -> dict[str, Any]:
    """A fresh mapping to lay a dotted setting into; a bare name is short for `{name: …}`."""
    if isinstance(value, dict):
        return dict(value)
    return {} if value is None else {"name": value}


def dataset_choices(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The datasets in `dataset: {first_of: […]}`, of which the first whose files are there is meant; else none.

    Raises:
        ExperimentError: `first_of` is no list of datasets.
    """
    dataset = fields.get("dataset")
    if not isinstance(dataset, dict) or "first_of" not in dataset:
        return []
    choices = dataset["first_of"]
    common = {key: value for key, value in dataset.items() if key != "first_of"}
    if not isinstance(choices, list) or not choices:
        raise ExperimentError(f"dataset.first_of is a list of datasets, got {choices!r}")
    return [{**_mapping(choice), **common} for choice in choices]


def to_yaml(spec: RunSpec, name: str) -> str:
    """An experiment file that asks for this run alone."""
    plain = spec.model_dump(mode="json", exclude_none=True)
    seed = plain.pop("seed")
    # A copy for the noise floor is the same training; the file asks for that.
    plain.pop("calibration")
    plain["latent"] = {"shape": plain["latent"]["shape"], "distribution": plain["latent"]["distribution"]}
    buffer = io.StringIO()
    writer = YAML()
    writer.default_flow_style = False
    writer.dump({"name": name, **plain, "seeds": [seed]}, buffer)
    return buffer.getvalue()
