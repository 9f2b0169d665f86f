#!/usr/bin/env python3
"""Writes what a program of a release is made of, as a software bill of materials in CycloneDX 1.5.

    python3 sbom.py TARGET >mcp-conformance-TARGET.cdx.json

TARGET is the target that the program is built for, such as x86_64-unknown-linux-musl. Only Cargo and the standard library are
needed. The same Cargo.lock gives the same bytes.
"""

import json
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tree(target):
    """Each line of `cargo tree`: depth, name, version, licence and repository. A package is expanded where it comes first."""
    command = ["cargo", "tree", "--locked", "--quiet", "--color", "never", "--target", target, "--edges", "normal,build"]
    command += ["--prefix", "depth", "--format", "|{p}|{l}|{r}|"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in output.splitlines():
        depth, package, licence, repository, _ = line.split("|")
        name, version = package.split(" ")[:2]
        yield int(depth), name, version[1:], licence, repository


def checksums():
    """The SHA-256 of the source of each package, from Cargo.lock."""
    found = {}
    for package in (ROOT / "Cargo.lock").read_text("utf-8").split("[[package]]")[1:]:
        values = dict(re.findall(r'^(name|version|checksum) = "(.*)"$', package, re.MULTILINE))
        if "checksum" in values:
            found[values["name"], values["version"]] = values["checksum"]
    return found


def component(name, version, licence, repository, checksum):
    """A package as a component."""
    purl = f"pkg:cargo/{name}@{version.replace('+', '%2B')}"
    described = {"type": "library", "bom-ref": purl, "name": name, "version": version}
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if licence:
        # Older packages separate alternatives by a slash.
        described["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    described["purl"] = purl
    if repository:
        described["externalReferences"] = [{"type": "vcs", "url": repository}]
    return described


def bill(target):
    """The bill of materials as an object."""
    sums = checksums()
    components, edges, parents = {}, {}, []
    for depth, name, version, licence, repository in tree(target):
        described = component(name, version, licence, repository, sums.get((name, version)))
        reference = described["bom-ref"]
        components[reference] = described
        edges.setdefault(reference, set())
        del parents[depth:]
        if parents:
            edges[parents[-1]].add(reference)
        parents.append(reference)
    program = components.pop(parents[0]) | {"type": "application"}
    program["properties"] = [{"name": "target", "value": target}]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program},
        "components": [components[reference] for reference in sorted(components)],
        "dependencies": [{"ref": reference, "dependsOn": sorted(edges[reference])} for reference in sorted(edges)],
    }
    # A number that follows from the contents, so that two runs write the same.
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document)).urn
    return document


def main():
    """Writes the bill of materials to standard output."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    json.dump(bill(sys.argv[1]), sys.stdout, indent=2)
    print()


main()
