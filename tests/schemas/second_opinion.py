"""Judges arguments with the Python library jsonschema, and compares that with what the fuzzer said of them.

    CORPUS=<file> cargo test --test suite -- --ignored schemas/corpus
    python3 tests/schemas/second_opinion.py target/tmp/corpus-arguments.jsonl

Needs `pip install 'jsonschema[format]'`, with which formats are asserted, and exits with 2 without it. Prints each argument that
one calls valid and the other invalid, and exits with 1 if there is one. Two kinds of difference are Python's, as ECMA-262,
which JSON Schema names, says otherwise: its `$` also matches before a line feed at the end of a text, and its `\\d` matches the
digits of every script.
"""

import json
import sys

import jsonschema

VALIDATORS = {
    "Draft4": jsonschema.Draft4Validator,
    "Draft6": jsonschema.Draft6Validator,
    "Draft7": jsonschema.Draft7Validator,
    "Draft201909": jsonschema.Draft201909Validator,
    "Draft202012": jsonschema.Draft202012Validator,
}

# Formats that the library checks only with a package of its extra `format`.
FORMATS = {"date-time", "duration", "idn-hostname", "iri", "json-pointer", "uri", "uri-template"}


def main(path):
    missing = FORMATS - set(jsonschema.Draft202012Validator.FORMAT_CHECKER.checkers)
    if missing:
        print(f"these formats are not checked: {', '.join(sorted(missing))}; run pip install 'jsonschema[format]'")
        return 2
    schemas = arguments = different = 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            kind = VALIDATORS[entry["dialect"]]
            validator = kind(entry["schema"], format_checker=kind.FORMAT_CHECKER)
            schemas += 1
            for value, is_valid in entry["arguments"]:
                arguments += 1
                error = next(validator.iter_errors(value), None)
                if (error is None) != is_valid:
                    different += 1
                    said = "valid" if is_valid else "invalid"
                    other = "valid" if error is None else error.message[:200]
                    print(f"{entry['name']}: {json.dumps(value)[:400]}\n    {said} here; there: {other}")
    print(f"{schemas} schemas, {arguments} arguments, {different} judged differently")
    return int(different > 0 or arguments == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
