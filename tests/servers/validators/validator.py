"""A validator of JSON Schema 2020-12, as far as `tools.json` uses it, with one mistake at most.

Numbers are read as `int` and `Decimal`, so that nothing is rounded unless a fault rounds it.
"""

import json
import re
import unicodedata
from decimal import Decimal
from fractions import Fraction


class Invalid(Exception):
    """The arguments are invalid: where, and by which keyword."""


def no_constant(name):
    raise ValueError(name)


def decode(line):
    return json.loads(line, parse_float=Decimal, parse_constant=no_constant)


def is_number(value):
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def is_integer(value):
    return is_number(value) and (isinstance(value, int) or Fraction(value).denominator == 1)


def same(left, right):
    """Equality of JSON values: numbers by value, objects without order, nothing of another type."""
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if is_number(left) and is_number(right):
        return left == right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


def text_of(value):
    """The JSON text of a value, with the keys in their order."""
    return json.dumps(value, default=str)


TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": is_integer,
    "number": is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}

# What a strict validator expects of a format; each is wrong in another way.
STRICT_FORMATS = {
    "date-time-without-fraction": ("date-time", r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d([Zz]|[+-]\d\d:\d\d)"),
    "date-time-without-offset": ("date-time", r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?[Zz]"),
    "date-time-in-upper-case": ("date-time", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"),
    "date-without-leap-day": ("date", r"\d{4}-(?!02-29)\d\d-\d\d"),
    "email-without-plus": ("email", r"[^+]*"),
    "uri-with-authority": ("uri", r"[A-Za-z][A-Za-z0-9+.-]*://.*"),
    "uuid-in-lower-case": ("uuid", r"[0-9a-f-]+"),
    "uuid-of-version-4": ("uuid", r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4.*"),
    "ipv4-without-zero": ("ipv4", r"[1-9].*"),
    "ipv6-without-compression": ("ipv6", r"(?!.*::).*"),
}


class Validator:
    def __init__(self, schema, fault=None):
        self.schema = schema
        self.fault = fault

    def accepts(self, arguments):
        try:
            self.check(arguments)
        except Invalid:
            return False
        return True

    def check(self, arguments):
        self.validate(arguments, self.schema, "")

    def passes(self, value, schema, path):
        try:
            self.validate(value, schema, path)
        except Invalid:
            return False
        return True

    def require(self, condition, path, keyword):
        if not condition:
            raise Invalid(f"{path or '/'}: {keyword}")

    def has(self, fault):
        return self.fault == fault

    def validate(self, value, schema, path):
        if isinstance(schema, bool):
            return self.require(schema, path, "false")
        depth = path.count("/")
        if self.has("depth-below-six-unchecked") and depth > 6:
            return None
        if self.has("depth-above-eight-rejected"):
            self.require(depth <= 8, path, "depth")
        if self.has("nested-objects-unchecked") and path and isinstance(value, dict):
            return None
        value = self.converted(value, schema)
        if "$ref" in schema:
            if not (self.has("references-below-one-ignored") and path.count("/") > 1):
                target = self.schema
                for step in schema["$ref"].split("/")[1:]:
                    target = target[step]
                self.validate(value, target, path)
            if self.has("reference-siblings-ignored"):
                return None
        self.check_type(value, schema, path)
        self.check_values(value, schema, path)
        if is_number(value):
            self.check_number(value, schema, path)
        elif isinstance(value, str):
            self.check_string(value, schema, path)
        elif isinstance(value, list):
            self.check_array(value, schema, path)
        elif isinstance(value, dict):
            self.check_object(value, schema, path)
        return self.check_combined(value, schema, path)

    # Types

    def converted(self, value, schema):
        """The value as a validator sees it that converts what it gets."""
        types = schema.get("type")
        types = types if isinstance(types, list) else [types]
        number = "integer" in types or "number" in types
        text = isinstance(value, str) and "string" not in types
        if self.has("text-to-number") and number and text and re.fullmatch(r"-?\d+(\.\d+)?", value):
            return self.parsed(value)
        if self.has("empty-text-to-number") and number and text and not value.strip():
            return 0
        if self.has("text-to-boolean") and types == ["boolean"] and value in ("true", "false"):
            return value == "true"
        if self.has("number-to-boolean") and types == ["boolean"] and is_number(value) and value in (0, 1):
            return value == 1
        if self.has("number-to-text") and types == ["string"] and is_number(value):
            return str(value)
        if self.has("boolean-to-text") and types == ["string"] and isinstance(value, bool):
            return str(value).lower()
        if self.has("boolean-to-number") and number and isinstance(value, bool):
            return int(value)
        if self.has("null-to-zero") and number and value is None:
            return 0
        if self.has("value-to-array") and types == ["array"] and not isinstance(value, (list, dict)):
            return [value]
        if self.has("array-of-one-to-value") and isinstance(value, list) and len(value) == 1:
            return value[0] if types[0] in ("string", "integer", "number", "boolean") else value
        if self.has("text-to-object") and types == ["object"] and text and value.startswith("{"):
            return self.parsed(value)
        if self.has("text-to-array") and types == ["array"] and text and value.startswith("["):
            return self.parsed(value)
        if self.has("fraction-truncated") and types == ["integer"] and isinstance(value, Decimal):
            return int(value)
        return value

    @staticmethod
    def parsed(text):
        try:
            return decode(text.encode("utf-8", "replace"))
        except ValueError:
            return text

    def check_type(self, value, schema, path):
        types = schema.get("type")
        if types is None:
            return
        if isinstance(types, list):
            if self.has("type-lists-ignored"):
                return
            if self.has("type-list-first-only"):
                types = types[:1]
        else:
            types = [types]
        matches = any(TYPES[name](value) for name in types)
        if self.has("null-is-absent") and value is None and path:
            matches = True
        if self.has("array-is-object") and "object" in types and isinstance(value, list):
            matches = True
        if self.has("null-is-object") and "object" in types and value is None:
            matches = True
        if self.has("integral-fraction-rejected") and types == ["integer"] and isinstance(value, Decimal):
            matches = False
        if self.has("exponent-is-no-integer") and types == ["integer"] and "E" in str(value):
            matches = False
        if self.has("integer-of-32-bits") and types == ["integer"] and is_number(value):
            matches = matches and -(2**31) <= value < 2**31
        if self.has("integer-of-63-bits") and types == ["integer"] and is_number(value):
            matches = matches and -(2**63) <= value < 2**63
        self.require(matches, path, "type")

    # Values

    def equal(self, value, member):
        if self.has("enum-ignores-case") and isinstance(value, str) and isinstance(member, str):
            return value.lower() == member.lower()
        if self.has("enum-in-lower-case") and isinstance(value, str):
            return value == member and value == value.lower()
        if self.has("enum-by-text") and not isinstance(value, (list, dict)):
            return str(value) == str(member) and value is not None or same(value, member)
        if self.has("enum-true-is-one") and not isinstance(value, (list, dict)):
            return value == member
        if self.has("enum-one-is-not-1.0") and isinstance(value, Decimal):
            return False
        if self.has("enum-zero-rejected") and value == 0 and is_number(value):
            return False
        if self.has("enum-null-rejected") and value is None:
            return False
        if self.has("const-nested-zero-is-false"):
            return same(value, member) or isinstance(value, list) and value == member
        if self.has("const-by-text"):
            return text_of(value) == text_of(member) if isinstance(value, dict) else same(value, member)
        return same(value, member)

    def check_values(self, value, schema, path):
        if "enum" in schema:
            self.require(any(self.equal(value, member) for member in schema["enum"]), path, "enum")
        if "const" in schema and not self.has("const-ignored"):
            self.require(self.equal(value, schema["const"]), path, "const")

    # Numbers

    def check_number(self, value, schema, path):
        low, high = schema.get("minimum"), schema.get("maximum")
        if self.has("bound-zero-ignored"):
            low, high = low or None, high or None
        if self.has("bounds-skip-zero") and value == 0:
            low = high = None
        if self.has("bounds-of-integers-only") and not is_integer(value):
            low = high = None
        if self.has("maximum-ignored"):
            high = None
        if self.has("bounds-as-doubles"):
            value = Decimal(float(value)) if abs(value) < 2**1000 else value
        if low is not None:
            low -= self.has("minimum-one-too-low")
            fits = value > low if self.has("minimum-exclusive") else value >= low
            if self.has("negative-zero-rejected") and low == 0 and isinstance(value, Decimal) and value.is_signed():
                fits = False
            self.require(fits, path, "minimum")
        if high is not None:
            high += self.has("maximum-one-too-high")
            self.require(value < high if self.has("maximum-exclusive") else value <= high, path, "maximum")
        if "exclusiveMinimum" in schema:
            low = schema["exclusiveMinimum"]
            fits = value >= low if self.has("exclusive-minimum-inclusive") else value > low
            self.require(fits, path, "exclusiveMinimum")
        if "exclusiveMaximum" in schema:
            high = schema["exclusiveMaximum"]
            fits = value <= high if self.has("exclusive-maximum-inclusive") else value < high
            self.require(fits, path, "exclusiveMaximum")
        if "multipleOf" in schema:
            self.require(self.is_multiple(value, schema["multipleOf"]), path, "multipleOf")

    def is_multiple(self, value, factor):
        if self.has("multiple-of-by-doubles"):
            quotient = float(value) / factor
            return quotient == int(quotient)
        if self.has("multiple-of-truncated") and factor >= 1:
            return int(value) % factor == 0
        if self.has("multiple-of-fractions-ignored") and factor < 1:
            return True
        return Fraction(value) % Fraction(str(factor)) == 0

    # Strings

    def length(self, text):
        if self.has("length-in-utf16"):
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        if self.has("length-in-bytes"):
            return len(text.encode("utf-8", "surrogatepass"))
        if self.has("length-without-combining"):
            return sum(1 for char in text if not unicodedata.combining(char))
        if self.has("length-normalized"):
            return len(unicodedata.normalize("NFC", text))
        if self.has("length-trimmed"):
            return len(text.strip())
        return len(text)

    def check_string(self, text, schema, path):
        length = self.length(text)
        if "minLength" in schema and not (self.has("empty-text-unchecked") and not text):
            low = schema["minLength"] - self.has("min-length-one-too-low")
            self.require(length > low if self.has("min-length-exclusive") else length >= low, path, "minLength")
        if "maxLength" in schema and not self.has("max-length-ignored"):
            high = schema["maxLength"] + self.has("max-length-one-too-high")
            self.require(length < high if self.has("max-length-exclusive") else length <= high, path, "maxLength")
        if "pattern" in schema and not self.has("pattern-ignored"):
            self.require(self.matches(text, schema["pattern"]), path, "pattern")
        for fault, (name, pattern) in STRICT_FORMATS.items():
            if self.has(fault) and schema.get("format") == name:
                self.require(re.fullmatch(pattern, text, re.DOTALL), path, "format")

    def matches(self, text, pattern):
        flags = 0 if self.has("pattern-unicode-digits") else re.ASCII
        if self.has("pattern-ignores-case"):
            flags |= re.IGNORECASE
        if self.has("pattern-by-lines"):
            return re.search(pattern, text, flags | re.MULTILINE)
        if self.has("pattern-on-trimmed-text"):
            text = text.strip()
        if self.has("pattern-of-whole-text"):
            return re.fullmatch(pattern, text, flags)
        if self.has("pattern-without-anchors"):
            pattern = pattern.removeprefix("^").removesuffix("$")
        if not self.has("pattern-before-final-newline"):
            pattern = pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern
        return (re.match if self.has("pattern-from-start") else re.search)(pattern, text, flags)

    # Arrays

    def check_array(self, items, schema, path):
        if self.has("empty-array-rejected"):
            self.require(items, path, "minItems")
        if "minItems" in schema:
            low = schema["minItems"] - self.has("min-items-one-too-low")
            self.require(len(items) > low if self.has("min-items-exclusive") else len(items) >= low, path, "minItems")
        if "maxItems" in schema and not self.has("max-items-ignored"):
            high = schema["maxItems"]
            self.require(len(items) < high if self.has("max-items-exclusive") else len(items) <= high, path, "maxItems")
        prefix = schema.get("prefixItems", [])
        if self.has("prefix-requires-all"):
            self.require(len(items) >= len(prefix), path, "prefixItems")
        for at, item in enumerate(items):
            if at < len(prefix):
                if not self.has("prefix-ignored"):
                    self.validate(item, prefix[at], f"{path}/{at}")
            elif "items" in schema:
                if self.has("items-first-only") and at > 0:
                    continue
                if self.has("items-last-unchecked") and at == len(items) - 1 > 0:
                    continue
                if self.has("items-false-ignored") and schema["items"] is False:
                    continue
                self.validate(item, schema["items"], f"{path}/{at}")
        if schema.get("uniqueItems"):
            self.require(self.is_unique(items), path, "uniqueItems")
        if "contains" in schema and not self.has("contains-ignored"):
            self.check_contains(items, schema, path)

    def check_contains(self, items, schema, path):
        if self.has("contains-accepts-empty") and not items:
            return
        count = sum(self.passes(item, schema["contains"], path) for item in items)
        low = schema.get("minContains", 1)
        if self.has("min-contains-zero-is-one"):
            low = low or 1
        self.require(count >= low, path, "contains")
        if "maxContains" in schema and not self.has("max-contains-ignored"):
            self.require(count <= schema["maxContains"], path, "maxContains")

    def is_unique(self, items):
        if self.has("unique-ignored"):
            return True
        if self.has("unique-neighbours-only"):
            return not any(same(left, right) for left, right in zip(items, items[1:]))
        pairs = ((left, right) for at, left in enumerate(items) for right in items[:at])
        return not any(self.duplicates(left, right) for left, right in pairs)

    def duplicates(self, left, right):
        nested = isinstance(left, (list, dict))
        if self.has("unique-true-is-one") and not nested:
            return same(left, right) or left == right
        if self.has("unique-nested-zero-is-false") and nested:
            return left == right
        if self.has("unique-by-text") and not nested and not isinstance(right, (list, dict)):
            return str(left) == str(right) or same(left, right)
        if self.has("unique-one-is-not-1.0"):
            return same(left, right) and type(left) is type(right)
        if self.has("unique-objects-ignored") and isinstance(left, dict):
            return False
        if self.has("unique-by-order-of-keys") and isinstance(left, dict):
            return text_of(left) == text_of(right)
        return same(left, right)

    # Objects

    def is_missing(self, members, name):
        if self.has("required-finds-inherited-names") and name in ("constructor", "toString"):
            return False
        if name not in members:
            return True
        value = members[name]
        return (
            (self.has("required-rejects-null") and value is None)
            or (self.has("required-rejects-empty-text") and value == "")
            or (self.has("required-rejects-zero") and is_number(value) and value == 0)
            or (self.has("required-rejects-false") and value is False)
            or (self.has("required-rejects-empty-array") and value == [])
        )

    def check_object(self, members, schema, path):
        required = schema.get("required", [])
        if self.has("required-first-only"):
            required = required[:1]
        if self.has("required-last-unchecked"):
            required = required[:-1]
        if self.has("required-nested-ignored") and path:
            required = []
        if self.has("every-property-required") and not path:
            required = list(schema.get("properties", {}))
        for name in required:
            self.require(not self.is_missing(members, name), path, f"required {name}")
        if "minProperties" in schema and not self.has("min-properties-ignored"):
            self.require(len(members) >= schema["minProperties"], path, "minProperties")
        if "maxProperties" in schema:
            high = schema["maxProperties"] - self.has("max-properties-exclusive")
            high += self.has("max-properties-one-too-high")
            self.require(len(members) <= high, path, "maxProperties")
        self.check_members(members, schema, path)
        if "propertyNames" in schema and not self.has("property-names-ignored"):
            names = dict(schema["propertyNames"])
            if self.has("property-names-by-length-only"):
                names.pop("pattern", None)
            for name in members:
                self.validate(name, names, path)
        self.check_dependencies(members, schema, path)

    def check_members(self, members, schema, path):
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        rest = schema.get("additionalProperties", True)
        if self.has("open-object-closed") and properties and "additionalProperties" not in schema:
            rest = False
        if self.has("additional-ignored") and rest is False:
            rest = True
        if self.has("additional-nested-ignored") and rest is False and path:
            rest = True
        if self.has("additional-schema-ignored") and isinstance(rest, dict):
            rest = True
        if self.has("additional-ignored-after-a-match"):
            if any(re.search(pattern, name) for pattern in patterns for name in members):
                rest = True
        for name, value in members.items():
            at = f"{path}/{name}"
            known = False
            if self.has("names-ignore-case"):
                name = next((own for own in properties if own.lower() == name.lower()), name)
            if name in properties:
                known = True
                if self.has("null-option-rejected") and name not in schema.get("required", []):
                    self.require(value is not None, at, "null")
                self.validate(value, properties[name], at)
            for pattern, subschema in patterns.items():
                if re.search(pattern, name) and not (self.has("patterns-of-unknown-names-only") and known):
                    known = not self.has("additional-rejects-pattern-names") or known
                    self.validate(value, subschema, at)
            if not known:
                self.validate(value, rest, at)

    def check_dependencies(self, members, schema, path):
        dependencies = list(schema.get("dependentRequired", {}).items())
        if self.has("dependencies-ignored"):
            dependencies = []
        if self.has("dependencies-first-only"):
            dependencies = dependencies[:1]
        for name, needed in dependencies:
            if name in members:
                self.require(all(other in members for other in needed), path, "dependentRequired")

    # Combinations

    def check_combined(self, value, schema, path):
        has_not = "not" in schema
        all_of = schema.get("allOf", [])
        if self.has("all-of-ignored-with-not") and has_not:
            all_of = []
        if self.has("all-of-first-only"):
            all_of = all_of[:1]
        for branch in all_of:
            if not (self.has("nested-combination-ignored") and isinstance(branch, dict) and "anyOf" in branch):
                self.validate(value, branch, path)
        if "anyOf" in schema and not (self.has("any-of-ignored-with-not") and has_not):
            branches = schema["anyOf"][:1] if self.has("any-of-first-only") else schema["anyOf"]
            count = sum(self.passes(value, branch, path) for branch in branches)
            self.require(count == 1 if self.has("any-of-as-one-of") else count, path, "anyOf")
        if "oneOf" in schema:
            self.check_one_of(value, schema["oneOf"], path)
        if has_not and not self.has("not-ignored"):
            self.require(not self.passes(value, schema["not"], path), path, "not")
        if "if" in schema and not self.has("if-ignored"):
            holds = self.passes(value, schema["if"], path)
            if self.has("then-needs-the-property"):
                holds = holds and all(name in value for name in schema["if"]["properties"])
                if not all(name in value for name in schema["if"]["properties"]):
                    return
            branch = "then" if holds else "else"
            if branch in schema and not (self.has("else-ignored") and branch == "else"):
                self.validate(value, schema[branch], path)

    def check_one_of(self, value, branches, path):
        if self.has("one-of-by-kind-only") and isinstance(value, dict):
            kinds = [branch["properties"]["kind"]["const"] for branch in branches]
            return self.require(value.get("kind") in kinds, path, "oneOf")
        if self.has("one-of-first-only"):
            return self.validate(value, branches[0], path)
        count = sum(self.passes(value, branch, path) for branch in branches)
        return self.require(count if self.has("one-of-as-any-of") else count == 1, path, "oneOf")
