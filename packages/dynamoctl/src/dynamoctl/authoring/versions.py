"""`dynamoctl convert --to`: the objects of files in another version, with their comments."""

import sys
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dynamo_graphs.ages import some_of
from dynamo_graphs.comments import converted_text
from dynamo_graphs.objects import InvalidObject
from dynamo_graphs.output import write_json, write_yaml
from dynamo_graphs.versions import Version, has_versions, in_version, notes_of, unplaced, with_target
from dynamo_graphs.yaml_editor import edited
from dynamo_operator.versions.shapes import ConversionError
from dynamoctl.authoring.manifest import Manifest
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import ConfigError, ConfigErrors, visible
from kube_runtime.types.meta import Object


def convert_versions(manifests: Sequence[Manifest], version: Version, output: str) -> ExitCode:
    """Print the objects in a version, others and those that have it already as they are; notes on stderr.

    An autoscaler gets the version of the scaling adapter that it names.

    On any problem nothing is printed on stdout.

    Raises: ConfigErrors.
    """
    problems: list[ConfigError] = []
    converted: list[Object] = []
    for manifest in manifests:
        value = manifest.value
        try:
            is_ours = has_versions(value)
            converted.append(in_version(value, version) if is_ours else with_target(value, version))
        except InvalidObject as error:
            problems += (manifest.problem(problem.path, problem.message) for problem in error.problems)
        except ConversionError as error:
            problems.append(manifest.problem(error.path or "spec", error.problem))
    if problems:
        raise ConfigErrors("manifests", problems)
    for manifest, value in zip(manifests, converted, strict=True):
        if has_versions(value) and value is not manifest.value:
            for note in _notes(manifest.value, value, version):
                print(f"note: {manifest.place()}: {visible(note)}", file=sys.stderr)
    if output == "json":
        write_json(converted, sys.stdout)
        return ExitCode.OK
    texts = [_text(manifest, value) for manifest, value in zip(manifests, converted, strict=True)]
    print("---\n".join(texts), end="")
    return ExitCode.OK


def _text(manifest: Manifest, value: Object) -> str:
    text: str | None = manifest.document.text
    if manifest.prefix or (text or "").lstrip()[:1] in ("{", "["):  # an item of a List, or JSON
        text = None
    elif value["apiVersion"] != manifest.value["apiVersion"]:
        text = converted_text(manifest.document.text, manifest.value, value)
    elif value is not manifest.value:
        text = edited(manifest.document.text, manifest.value, value)
    if text is not None:
        return text
    from io import StringIO

    stream = StringIO()
    write_yaml([value], stream)
    return stream.getvalue().removeprefix("---\n")


def _notes(before: Object, after: Object, version: str) -> Iterator[str]:
    """A line for each annotation that keeps what the version has no field for."""
    for name in notes_of(after):
        if name in notes_of(before):
            continue
        if version == "v1beta1":
            fields = _outermost(unplaced(before, after))
        else:
            kept: Object = msgspec.json.decode(after["metadata"]["annotations"][name])
            fields = list(_fields(kept.get("spec"), "spec"))
        listed = f"for {some_of(fields, ', ')}" if fields else "for some of the places of values"
        yield f"{version} has no field {listed}; the annotation {name} keeps it"


def _outermost(paths: Iterable[str]) -> list[str]:
    """The paths, without those inside another one."""
    outermost: list[str] = []
    for path in paths:  # each before those inside it
        if not outermost or not path.startswith((f"{outermost[-1]}.", f"{outermost[-1]}[")):
            outermost.append(path)
    return outermost


def _fields(value: object, path: str) -> Iterator[str]:
    """The paths of the kept values; the entries of a list have names."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _fields(inner, f"{path}.{key}")
    elif isinstance(value, list) and value and all(isinstance(it, dict) and "name" in it for it in value):
        for item in value:
            rest = {key: inner for key, inner in item.items() if key != "name"}
            if rest:
                yield from _fields(rest, f"{path}[{item['name']}]")
    else:
        yield path
