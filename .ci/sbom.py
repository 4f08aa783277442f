"""The software bill of materials of what is locked: CycloneDX 1.6, as JSON.

    make sbom [ARGS=FILE]

Made of requirements.lock alone, so it is the same on every machine and day; licences are those that
the packages installed in .venv state.  What only development needs has the scope ``excluded``.
"""

import json
import sys
import tomllib
import uuid
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from locked import LOCK, ROOT, Pin, needed_by, pins_of
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

Json = dict[str, Any]


def purl(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name}@{pin.version}"


def licence_of(distribution: Distribution) -> list[Json]:
    """What a package says of its licence: an SPDX expression, or else words; [] for nothing."""
    said = distribution.metadata
    if said["License-Expression"]:
        return [{"expression": said["License-Expression"]}]
    kinds = [kind for kind in said.get_all("Classifier") or [] if kind.startswith("License :: ")]
    names = [kind.rpartition(" :: ")[2] for kind in kinds]
    # Some packages put the whole text there.
    stated = (said["License"] or "").strip()
    if not names and stated and "\n" not in stated and len(stated) <= 60:
        names = [stated]
    return [{"license": {"name": name}} for name in names]


def licences(installed: Iterable[Distribution]) -> dict[tuple[str, str], list[Json]]:
    """The licence of each installed package, by name and version."""
    return {
        (canonicalize_name(each.metadata["Name"]), each.version): licence_of(each)
        for each in installed
    }


def component(pin: Pin, scope: str, licence: list[Json]) -> Json:
    """One package.  Its files stand under ``externalReferences``: a release has several."""
    found: Json = {
        "type": "library",
        "bom-ref": purl(pin),
        "name": pin.name,
        "version": pin.version,
        "scope": scope,
        "purl": purl(pin),
        "externalReferences": [
            {
                "type": "distribution",
                "url": purl(pin),
                "comment": "Hashes of the files of this release, of which one is installed.",
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in pin.hashes],
            }
        ],
    }
    if licence:
        found["licenses"] = licence
    if pin.requirement.marker:
        found["properties"] = [
            {"name": "evenrank:marker", "value": str(pin.requirement.marker)}
        ]  # fmt: skip
    return found


def bill(
    pins: list[Pin], project: Mapping[str, Any], version: str,
    known: Mapping[tuple[str, str], list[Json]],
) -> Json:  # fmt: skip
    """The whole document.  Its serial number is derived from what it lists."""
    own = f"pkg:generic/{project['name']}@{version}"
    asked = {canonicalize_name(Requirement(each).name) for each in project["dependencies"]}
    needed = needed_by(pins, asked)
    edges: dict[str, list[str]] = {own: []}
    for pin in pins:
        edges[purl(pin)] = sorted(purl(each) for each in pins if pin.name in each.via)
        if "" in pin.via:
            edges[own].append(purl(pin))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(sorted(edges)))}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": version,
                "description": project["description"],
                "licenses": [{"expression": project["license"]}],
                "purl": own,
            }
        },
        "components": [
            component(
                pin,
                "required" if pin.name in needed else "excluded",
                known.get((pin.name, pin.version), []),
            )
            for pin in pins
        ],
        "dependencies": [{"ref": ref, "dependsOn": on} for ref, on in edges.items()],
    }


def wrong_with(document: str) -> str | None:
    """What the schema of the format says against a document; None if nothing."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(document)
    return None if error is None else str(error)


def made() -> Json:
    """The document for this folder."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    stated = (ROOT / project["tool"]["hatch"]["version"]["path"]).read_text("utf-8")
    version = stated.partition('__version__ = "')[2].partition('"')[0]
    places = [str(place) for place in ROOT.glob(".venv/lib/python*/site-packages")]
    known = licences(distributions(path=places))
    return bill(pins_of(LOCK.read_text("utf-8")), project["project"], version, known)


def main() -> None:
    document = json.dumps(made(), indent=2) + "\n"
    wrong = wrong_with(document)
    if wrong is not None:
        sys.exit(f"The document does not fit the schema of CycloneDX 1.6: {wrong}")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(document, "utf-8")
    else:
        print(document, end="")


if __name__ == "__main__":
    main()
