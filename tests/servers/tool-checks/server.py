#!/usr/bin/env python3
"""An MCP server over stdio whose tools check their arguments by hand.

server.py                every tool judges exactly as its inputSchema says
server.py --fault NAME   the same, with one mistake (see faults.tsv)
server.py --check        proves that each mistake shows on its witness, and on no other server
server.py --list         names of the mistakes
server.py --tools        the tools with their schemas
"""
import json
import os
import re
import sys
import threading
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
FAULT = None


def bug(name):
    return FAULT == name


class Invalid(Exception):
    pass


def fail(path, why):
    raise Invalid("%s: %s" % (path, why))


# ---------------------------------------------------------------- concepts

def is_number(v):
    return isinstance(v, (int, Decimal)) and not isinstance(v, bool)


def is_whole(v):
    return is_number(v) and (isinstance(v, int) or v == v.to_integral_value())


def same(a, b):
    """Equality of JSON values: 1 equals 1.0 but not true; the order of keys does not matter."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if is_number(a) and is_number(b):
        return a == b
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def has_duplicates(values):
    return any(same(x, y) for i, x in enumerate(values) for y in values[:i])


def text(v, path, lo=0, hi=None):
    if not isinstance(v, str):
        fail(path, "must be a string")
    if len(v) < lo:
        fail(path, "must have at least %d characters" % lo)
    if hi is not None and len(v) > hi:
        fail(path, "must have at most %d characters" % hi)
    return v


def matching(v, path, pattern):
    """pattern describes the whole string."""
    if not re.fullmatch(pattern, text(v, path)):
        fail(path, "must match ^%s$" % pattern)
    return v


def number(v, path, lo=None, hi=None, above=None):
    if not is_number(v):
        fail(path, "must be a number")
    if lo is not None and v < lo:
        fail(path, "must be at least %s" % lo)
    if hi is not None and v > hi:
        fail(path, "must be at most %s" % hi)
    if above is not None and v <= above:
        fail(path, "must be greater than %s" % above)
    return v


def whole(v, path, lo=None, hi=None):
    if not is_whole(v):
        fail(path, "must be an integer")
    return number(v, path, lo, hi)


def flag(v, path):
    if not isinstance(v, bool):
        fail(path, "must be true or false")
    return v


def choice(v, path, options):
    if not any(same(v, o) for o in options):
        fail(path, "must be one of %s" % (options,))
    return v


def array(v, path, lo=0, hi=None):
    if not isinstance(v, list):
        fail(path, "must be an array")
    if len(v) < lo:
        fail(path, "must have at least %d items" % lo)
    if hi is not None and len(v) > hi:
        fail(path, "must have at most %d items" % hi)
    return v


def record(v, path, known=None, required=()):
    if not isinstance(v, dict):
        fail(path, "must be an object")
    for key in required:
        if key not in v:
            fail(path, "%s is required" % key)
    if known is not None:
        for key in v:
            if key not in known:
                fail(path, "unknown member %r" % key)
    return v


def holds(check, *args):
    try:
        check(*args)
        return True
    except Invalid:
        return False


def money(v):
    """Whether v is a multiple of 0.01, exactly."""
    if isinstance(v, int):
        return True
    _, digits, exponent = v.as_tuple()
    digits = list(digits)
    while digits and digits[-1] == 0:
        digits.pop()
        exponent += 1
    return not digits or exponent >= -2


# ---------------------------------------------------------------- search_issues

SEARCH_ISSUES = {
    "type": "object",
    "properties": {
        "owner": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9-]{0,38}$", "description": "Account that owns the repository"},
        "repo": {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^[A-Za-z0-9._-]+$"},
        "query": {"type": "string", "maxLength": 256, "description": "Words to look for; empty finds everything"},
        "state": {"enum": ["open", "closed", "all"], "default": "open"},
        "labels": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 50}, "uniqueItems": True, "maxItems": 10},
        "sort": {"type": "string", "enum": ["created", "updated", "comments"]},
        "direction": {"type": "string", "enum": ["asc", "desc"]},
        "since": {"type": "string", "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"},
        "assignee": {"type": ["string", "null"], "maxLength": 39, "description": "null: issues without assignee"},
        "milestone": {"anyOf": [{"type": "integer", "minimum": 1}, {"enum": ["*", "none"]}]},
        "per_page": {"type": "integer", "minimum": 1, "maximum": 100, "default": 30},
        "page": {"type": "integer", "minimum": 0},
    },
    "required": ["owner", "repo"],
    "additionalProperties": False,
}


def search_issues(a):
    if bug("issues-key-case"):
        a = {k.lower(): v for k, v in a.items()}
    record(a, "arguments", None if bug("issues-extra") else SEARCH_ISSUES["properties"], ("owner", "repo"))
    if "owner" in a:
        if bug("issues-owner-newline"):
            if not re.match(r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}$", text(a["owner"], "owner")):
                fail("owner", "is no account name")
        else:
            matching(a["owner"], "owner", r"[A-Za-z0-9][A-Za-z0-9-]{0,38}")
    if "repo" in a:
        text(a["repo"], "repo", 1, 100)
        if bug("issues-repo-prefix"):
            if not re.match(r"[A-Za-z0-9._-]+", a["repo"]):
                fail("repo", "is no repository name")
        else:
            matching(a["repo"], "repo", r"[A-Za-z0-9._-]+")
    if "query" in a:
        text(a["query"], "query", 0, 256)
        if bug("issues-query-empty") and not a["query"]:
            fail("query", "is missing")
    if "state" in a:
        state = a["state"]
        if bug("issues-state-case") and isinstance(state, str):
            state = state.lower()
        choice(state, "state", ["open", "closed", "all"])
    if "labels" in a:
        labels = a["labels"]
        if bug("issues-labels-json") and isinstance(labels, str):
            try:
                labels = json.loads(labels)
            except ValueError:
                pass
        array(labels, "labels", 0, None if bug("issues-labels-no-max") else 10)
        for i, label in enumerate(labels[:1] if bug("issues-labels-first") else labels):
            text(label, "labels[%d]" % i, 1, 50)
        if has_duplicates(labels):
            fail("labels", "must be unique")
    if "sort" in a:
        sort = a["sort"]
        if not (bug("issues-sort-any") and isinstance(sort, str)):
            choice(sort, "sort", ["created", "updated", "comments"])
    if "direction" in a:
        if bug("issues-direction-substring"):
            if text(a["direction"], "direction") not in "asc,desc":
                fail("direction", "must be asc or desc")
        else:
            choice(a["direction"], "direction", ["asc", "desc"])
    if "since" in a:
        since = text(a["since"], "since")
        if bug("issues-since-lenient"):
            parts = since.split("-")
            if not (len(parts) == 3 and all(re.fullmatch("[0-9]+", p) for p in parts)
                    and len(parts[0]) == 4 and 1 <= int(parts[1]) <= 12 and 1 <= int(parts[2]) <= 31):
                fail("since", "is no date")
        else:
            matching(since, "since", r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
    if "assignee" in a:
        who = a["assignee"]
        if who is not None or bug("issues-assignee-null"):
            text(who, "assignee", 0, 39)
    if "milestone" in a:
        m = a["milestone"]
        if bug("issues-milestone-first"):
            whole(m, "milestone", 1)
        elif not holds(whole, m, "milestone", 1):
            choice(m, "milestone", ["*", "none"])
    if "per_page" in a:
        n = a["per_page"]
        if bug("issues-per-page-bool") and isinstance(n, bool):
            n = int(n)
        if bug("issues-per-page-string") and isinstance(n, str) and re.fullmatch("[0-9]{1,9}", n):
            n = int(n)
        if bug("issues-per-page-float") and not isinstance(n, int):
            fail("per_page", "must be an integer")
        if bug("issues-per-page-exclusive"):
            if not 1 < whole(n, "per_page") < 100:
                fail("per_page", "must be between 1 and 100")
        whole(n, "per_page", 1, None if bug("issues-per-page-no-max") else 100)
    if "page" in a:
        if bug("issues-page-zero") and not a["page"]:
            fail("page", "is missing")
        whole(a["page"], "page", 0)


# ---------------------------------------------------------------- create_pull_request

CREATE_PULL_REQUEST = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {
        "login": {"type": "string", "pattern": "^[A-Za-z0-9-]{1,39}$"},
        "branch": {"type": "string", "pattern": "^[A-Za-z0-9._/-]+$", "maxLength": 120},
    },
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 256},
        "head": {"$ref": "#/$defs/branch"},
        "base": {"$ref": "#/$defs/branch", "not": {"enum": ["HEAD", "FETCH_HEAD"]}},
        "body": {"type": ["string", "null"], "maxLength": 4000},
        "draft": {"type": "boolean", "default": False},
        "reviewers": {"type": "array", "items": {"$ref": "#/$defs/login"}, "uniqueItems": True, "maxItems": 15},
        "team_reviewers": {"type": "array", "items": {"$ref": "#/$defs/login"}},
        "labels": {
            "type": "array",
            "maxItems": 8,
            "items": {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {
                        "type": "object",
                        "properties": {"name": {"type": "string", "minLength": 1}, "color": {"type": "string", "pattern": "^[0-9a-fA-F]{6}$"}},
                        "required": ["name"],
                        "additionalProperties": False,
                    },
                ]
            },
        },
        "auto_merge": {
            "type": "object",
            "properties": {"method": {"enum": ["merge", "squash", "rebase"]}, "commit_title": {"type": "string", "maxLength": 120}},
            "required": ["method"],
            "additionalProperties": False,
        },
    },
    "required": ["title", "head", "base"],
    "dependentRequired": {"team_reviewers": ["reviewers"]},
    "additionalProperties": False,
}


def pull_label(v, path):
    if isinstance(v, str):
        text(v, path, 1)
        return
    required = () if bug("pr-label-name-missing") else ("name",)
    record(v, path, ("name", "color"), required)
    if "name" in v:
        text(v["name"], path + ".name", 1)
    if "color" in v:
        if bug("pr-label-color-lower"):
            matching(v["color"], path + ".color", r"[0-9a-f]{6}")
        elif bug("pr-label-color-prefix"):
            if not re.match(r"[0-9a-fA-F]{6}", text(v["color"], path)):
                fail(path + ".color", "is no colour")
        else:
            matching(v["color"], path + ".color", r"[0-9a-fA-F]{6}")


def create_pull_request(a):
    record(a, "arguments", CREATE_PULL_REQUEST["properties"], ("title", "head", "base"))
    title = a["title"]
    if bug("pr-title-trim-max") and isinstance(title, str) and title.strip():
        title = title.strip()
    text(title, "title", 1, 256)
    if bug("pr-title-bytes") and len(title.encode("utf-8", "surrogatepass")) > 256:
        fail("title", "is too long")
    if bug("pr-title-utf16") and len(title.encode("utf-16-le", "surrogatepass")) // 2 > 256:
        fail("title", "is too long")
    if bug("pr-title-blank") and not title.strip():
        fail("title", "is empty")
    for key in ("head", "base"):
        text(a[key], key, 0, 120)
        matching(a[key], key, r"[A-Za-z0-9._/-]+")
    if a["base"] in ("HEAD", "FETCH_HEAD") and not bug("pr-base-not"):
        fail("base", "must be a branch")
    if a.get("body") is not None:
        text(a["body"], "body", 0, 4000)
    if "draft" in a:
        draft = a["draft"]
        if bug("pr-draft-string") and draft in ("true", "false"):
            draft = draft == "true"
        if bug("pr-draft-one") and is_number(draft) and draft in (True, False):
            draft = bool(draft)
        flag(draft, "draft")
    if "reviewers" in a:
        names = array(a["reviewers"], "reviewers", 0, 15)
        for i, name in enumerate(names):
            if bug("pr-reviewers-first") and i > 0:
                break
            matching(name, "reviewers[%d]" % i, r"[A-Za-z0-9-]{1,39}")
        if has_duplicates(names):
            fail("reviewers", "must be unique")
    if "team_reviewers" in a:
        for i, name in enumerate(array(a["team_reviewers"], "team_reviewers")):
            matching(name, "team_reviewers[%d]" % i, r"[A-Za-z0-9-]{1,39}")
        if bug("pr-dependent"):
            pass
        elif bug("pr-dependent-falsy"):
            if a["team_reviewers"] and "reviewers" not in a:
                fail("team_reviewers", "needs reviewers")
        elif bug("pr-dependent-empty"):
            if not a.get("reviewers"):
                fail("team_reviewers", "needs reviewers")
        elif "reviewers" not in a:
            fail("team_reviewers", "needs reviewers")
    if "labels" in a:
        for i, label in enumerate(array(a["labels"], "labels", 0, 8)):
            pull_label(label, "labels[%d]" % i)
    if "auto_merge" in a:
        merge = record(a["auto_merge"], "auto_merge", None if bug("pr-automerge-extra") else ("method", "commit_title"), ("method",))
        choice(merge["method"], "auto_merge.method", ["merge", "squash", "rebase"])
        if "commit_title" in merge:
            text(merge["commit_title"], "auto_merge.commit_title", 0, 120)


# ---------------------------------------------------------------- run_query

RUN_QUERY = {
    "type": "object",
    "properties": {
        "sql": {"type": "string", "minLength": 1, "maxLength": 2000, "pattern": "[^ \\t\\r\\n]"},
        "params": {"type": "array", "maxItems": 20, "items": {"type": ["string", "number", "boolean", "null"]}},
        "read_only": {"type": "boolean", "default": True},
        "limit": {"type": "integer", "minimum": 0, "maximum": 10000},
        "offset": {"type": "integer", "minimum": 0},
        "timeout_s": {"type": "number", "exclusiveMinimum": 0, "maximum": 300},
        "isolation": {"enum": ["read committed", "repeatable read", "serializable", None]},
        "database": {"type": "string", "pattern": "^[a-z_][a-z0-9_]{0,62}$"},
    },
    "required": ["sql", "read_only"],
    "dependentRequired": {"offset": ["limit"]},
    "additionalProperties": False,
}


def run_query(a):
    if bug("query-default-required"):
        a = dict({"read_only": True}, **a)
    if bug("query-readonly-false") and not a.get("read_only"):
        fail("read_only", "is required")
    record(a, "arguments", RUN_QUERY["properties"], ("sql", "read_only"))
    sql = a["sql"]
    if not (bug("query-sql-null") and sql is None):
        text(sql, "sql", 1, 2000)
        found = re.match if bug("query-sql-match") else re.search
        if not found(r"[^ \t\r\n]", sql):
            fail("sql", "must not be blank")
    flag(a["read_only"], "read_only")
    if "params" in a:
        for i, p in enumerate(array(a["params"], "params", 0, 20)):
            if bug("query-params-null") and p is None:
                fail("params[%d]" % i, "must not be null")
            if bug("query-params-falsy") and not p:
                continue
            if isinstance(p, (list, dict)):
                fail("params[%d]" % i, "must be a scalar")
    if "limit" in a:
        whole(a["limit"], "limit", 0, 10000)
    if "offset" in a:
        whole(a["offset"], "offset", 0)
        if bug("query-offset-limit-zero"):
            if not a.get("limit"):
                fail("offset", "needs a limit")
        elif "limit" not in a:
            fail("offset", "needs a limit")
    if "timeout_s" in a:
        t = a["timeout_s"]
        if bug("query-timeout-inclusive"):
            number(t, "timeout_s", 0, 300)
        elif bug("query-timeout-plus-one"):
            number(t, "timeout_s", 1, 300)
        elif bug("query-timeout-int"):
            number(whole(t, "timeout_s"), "timeout_s", None, 300, 0)
        else:
            number(t, "timeout_s", None, 300, 0)
    if "isolation" in a:
        level = a["isolation"]
        if bug("query-isolation-trim") and isinstance(level, str):
            level = level.strip()
        if bug("query-isolation-null") and not isinstance(level, str):
            fail("isolation", "must be a string")
        choice(level, "isolation", ["read committed", "repeatable read", "serializable", None])
    if "database" in a:
        name = text(a["database"], "database")
        if bug("query-database-identifier"):
            if not (name.isidentifier() and name == name.lower() and len(name) <= 63):
                fail("database", "is no identifier")
        else:
            matching(name, "database", r"[a-z_][a-z0-9_]{0,62}")


# ---------------------------------------------------------------- filter_records

FILTER_RECORDS = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {
        "filter": {
            "oneOf": [
                {"$ref": "#/$defs/all"},
                {"$ref": "#/$defs/any"},
                {"$ref": "#/$defs/none"},
                {"$ref": "#/$defs/comparison"},
            ]
        },
        "all": {"type": "object", "properties": {"and": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/filter"}}}, "required": ["and"], "additionalProperties": False},
        "any": {"type": "object", "properties": {"or": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/filter"}}}, "required": ["or"], "additionalProperties": False},
        "none": {"type": "object", "properties": {"not": {"$ref": "#/$defs/filter"}}, "required": ["not"], "additionalProperties": False},
        "comparison": {
            "type": "object",
            "properties": {
                "field": {"type": "string", "pattern": "^[a-z][a-zA-Z0-9_.]*$"},
                "op": {"enum": ["eq", "ne", "lt", "gt", "in", "is_null"]},
                "value": {},
            },
            "required": ["field", "op"],
            "additionalProperties": False,
            "allOf": [
                {
                    "if": {"required": ["op"], "properties": {"op": {"const": "in"}}},
                    "then": {"required": ["value"], "properties": {"value": {"type": "array", "minItems": 1}}},
                },
                {
                    "if": {"required": ["op"], "properties": {"op": {"const": "is_null"}}},
                    "then": {"not": {"required": ["value"]}},
                },
            ],
        },
    },
    "properties": {
        "table": {"type": "string", "minLength": 1, "maxLength": 63},
        "filter": {"$ref": "#/$defs/filter"},
        "fields": {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True},
        "order_by": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string", "minLength": 1}, "direction": {"enum": ["asc", "desc"]}},
                "required": ["field"],
                "additionalProperties": False,
            },
        },
        "page": {
            "type": "object",
            "properties": {"limit": {"type": "integer", "minimum": 1, "maximum": 500}, "cursor": {"type": "string"}},
            "minProperties": 1,
            "additionalProperties": False,
        },
    },
    "required": ["table", "filter"],
    "additionalProperties": False,
}


def record_filter(f, path, depth=1):
    record(f, path)
    if bug("filter-depth-limit") and depth > 3:
        fail(path, "is nested too deeply")
    if bug("filter-depth-one") and depth > 1:
        return
    for word in ("and", "or"):
        if word in f:
            if not bug("filter-two-operators"):
                record(f, path, (word,))
            parts = array(f[word], path + "." + word, 0 if bug("filter-or-empty") and word == "or" else 1)
            for i, part in enumerate(parts):
                record_filter(part, "%s.%s[%d]" % (path, word, i), depth + 1)
            return
    if "not" in f:
        record(f, path, ("not",))
        if not bug("filter-not-unchecked"):
            record_filter(f["not"], path + ".not", depth + 1)
        return
    record(f, path, ("field", "op", "value"), ("field", "op"))
    matching(f["field"], path + ".field", r"[a-z][a-zA-Z0-9_.]*")
    op = choice(f["op"], path + ".op", ["eq", "ne", "lt", "gt", "in", "is_null"])
    if bug("filter-value-required") and op != "is_null" and "value" not in f:
        fail(path, "value is required")
    if op == "in" and not bug("filter-in-scalar"):
        record(f, path, None, ("value",))
        array(f["value"], path + ".value", 1)
    if op == "is_null":
        if bug("filter-isnull-null"):
            if f.get("value") is not None:
                fail(path, "is_null takes no value")
        elif "value" in f and not bug("filter-isnull-value"):
            fail(path, "is_null takes no value")


def filter_records(a):
    record(a, "arguments", FILTER_RECORDS["properties"], ("table", "filter"))
    text(a["table"], "table", 1, 63)
    record_filter(a["filter"], "filter")
    if "fields" in a:
        fields = array(a["fields"], "fields")
        for i, name in enumerate(fields):
            text(name, "fields[%d]" % i, 1)
        if has_duplicates(fields) and not bug("filter-fields-duplicates"):
            fail("fields", "must be unique")
    if "order_by" in a:
        for i, o in enumerate(array(a["order_by"], "order_by", 0, 4 if bug("filter-order-four") else 3)):
            path = "order_by[%d]" % i
            record(o, path, ("field", "direction"), ("field",))
            text(o["field"], path + ".field", 1)
            if "direction" in o:
                choice(o["direction"], path + ".direction", ["asc", "desc"])
    if "page" in a:
        page = record(a["page"], "page", ("limit", "cursor"))
        if not page and not bug("filter-page-empty"):
            fail("page", "must not be empty")
        if "limit" in page:
            whole(page["limit"], "page.limit", 1, 500)
        if "cursor" in page:
            text(page["cursor"], "page.cursor")


# ---------------------------------------------------------------- browser_action

def variant(name, required, **properties):
    return {
        "type": "object",
        "properties": dict({"action": {"const": name}}, **properties),
        "required": ["action"] + required,
        "additionalProperties": False,
    }


BROWSER_ACTION = {
    "type": "object",
    "properties": {
        "session": {"type": "string", "pattern": "^sess_[a-z0-9]{8}$"},
        "steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": 20,
            "items": {
                "oneOf": [
                    variant("navigate", ["url"], url={"type": "string", "pattern": "^https?://[^ \\t\\r\\n]+$"},
                            wait_until={"enum": ["load", "domcontentloaded", "networkidle"]}),
                    variant("click", ["target"], target={
                        "type": "object",
                        "properties": {"selector": {"type": "string", "minLength": 1}, "x": {"type": "integer", "minimum": 0}, "y": {"type": "integer", "minimum": 0}},
                        "oneOf": [{"required": ["selector"]}, {"required": ["x", "y"]}],
                    }, count={"type": "integer", "minimum": 1, "maximum": 3}),
                    variant("type", ["selector", "text"], selector={"type": "string", "minLength": 1}, text={"type": "string", "maxLength": 500}),
                    dict(variant("scroll", [], dx={"type": "number"}, dy={"type": "number"}), anyOf=[{"required": ["dx"]}, {"required": ["dy"]}]),
                    variant("wait", ["ms"], ms={"type": "integer", "minimum": 0, "maximum": 30000}),
                ]
            },
        },
        "viewport": {
            "type": "object",
            "properties": {
                "width": {"type": "integer", "minimum": 320, "maximum": 3840},
                "height": {"type": "integer", "minimum": 240, "maximum": 2160},
                "scale": {"enum": [1, 1.5, 2, 3]},
            },
            "required": ["width", "height"],
            "additionalProperties": False,
        },
    },
    "required": ["session", "steps"],
    "additionalProperties": False,
}

STEP_MEMBERS = {
    "navigate": (("url",), ("wait_until",)),
    "click": (("target",), ("count",)),
    "type": (("selector", "text"), ()),
    "scroll": ((), ("dx", "dy")),
    "wait": (("ms",), ()),
}


def browser_step(s, path):
    record(s, path)
    action = s.get("action")
    if bug("browser-default-action") and "action" not in s:
        action = "navigate"
    elif "action" not in s:
        fail(path, "action is required")
    if not isinstance(action, str) or action not in STEP_MEMBERS:
        if bug("browser-unknown-action") and isinstance(action, str):
            return
        fail(path + ".action", "is unknown")
    required, optional = STEP_MEMBERS[action]
    known = ("action",) + required + optional
    if bug("browser-other-variant"):
        known = ("action",) + tuple(m for r, o in STEP_MEMBERS.values() for m in r + o)
    if bug("browser-text-empty") and action == "type" and not s.get("text"):
        fail(path, "text is required")
    record(s, path, known, required)
    if action == "navigate":
        url = text(s["url"], path + ".url")
        if bug("browser-url-start"):
            ok = url.startswith(("http://", "https://"))
        else:
            ok = re.fullmatch(r"https?://[^ \t\r\n]+", url)
        if not ok:
            fail(path + ".url", "must be a http or https URL")
        if "wait_until" in s:
            choice(s["wait_until"], path + ".wait_until", ["load", "domcontentloaded", "networkidle"])
    elif action == "click":
        t = record(s["target"], path + ".target")
        if "selector" in t:
            text(t["selector"], path + ".target.selector", 1)
        for key in ("x", "y"):
            if key in t:
                whole(t[key], path + ".target." + key, 0)
        by_selector, by_point = "selector" in t, "x" in t and "y" in t
        if bug("browser-target-zero"):
            by_point = bool(t.get("x") and t.get("y"))
        if by_selector + by_point == 0 or (by_selector and by_point and not bug("browser-target-both")):
            fail(path + ".target", "needs either a selector or x and y")
        if "count" in s:
            whole(s["count"], path + ".count", 1, 3)
    elif action == "type":
        text(s["selector"], path + ".selector", 1)
        text(s["text"], path + ".text", 0, 500)
    elif action == "scroll":
        for key in ("dx", "dy"):
            if key in s:
                number(s[key], path + "." + key)
        if bug("browser-scroll-zero"):
            if not (s.get("dx") or s.get("dy")):
                fail(path, "needs dx or dy")
        elif "dx" not in s and "dy" not in s:
            fail(path, "needs dx or dy")
    elif action == "wait":
        whole(s["ms"], path + ".ms", 0, 30000)
        if bug("browser-wait-range") and int(s["ms"]) not in range(0, 30000):
            fail(path + ".ms", "is too long")


def browser_action(a):
    record(a, "arguments", BROWSER_ACTION["properties"], ("session", "steps"))
    matching(a["session"], "session", r"sess_[a-z0-9]{8}")
    for i, step in enumerate(array(a["steps"], "steps", 1, 20)):
        browser_step(step, "steps[%d]" % i)
    if "viewport" in a and not (bug("browser-viewport-null") and not a["viewport"]):
        view = record(a["viewport"], "viewport", ("width", "height", "scale"), ("width", "height"))
        whole(view["width"], "viewport.width", 320, 3840)
        whole(view["height"], "viewport.height", 240, 2160)
        if "scale" in view:
            scale = view["scale"]
            if bug("browser-scale-true") and scale is True:
                scale = 1
            if bug("browser-scale-text"):
                if not is_number(scale) or str(scale) not in ("1", "1.5", "2", "3"):
                    fail("viewport.scale", "is not supported")
            choice(scale, "viewport.scale", [1, Decimal("1.5"), 2, 3])


# ---------------------------------------------------------------- create_event

CREATE_EVENT = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {
        "time": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {
                        "dateTime": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"},
                        "timeZone": {"type": "string", "minLength": 1},
                    },
                    "required": ["dateTime"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}},
                    "required": ["date"],
                    "additionalProperties": False,
                },
            ]
        }
    },
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 200},
        "start": {"$ref": "#/$defs/time"},
        "end": {"$ref": "#/$defs/time"},
        "all_day": {"type": "boolean"},
        "attendees": {
            "type": "array",
            "maxItems": 50,
            "items": {
                "type": "object",
                "properties": {
                    "email": {"type": "string", "format": "email"},
                    "optional": {"type": "boolean"},
                    "response": {"enum": ["needsAction", "accepted", "declined", "tentative"]},
                },
                "required": ["email"],
                "additionalProperties": False,
            },
        },
        "recurrence": {
            "oneOf": [
                {"type": "object", "properties": {"freq": {"const": "daily"}, "interval": {"type": "integer", "minimum": 1}}, "required": ["freq"], "additionalProperties": False},
                {
                    "type": "object",
                    "properties": {"freq": {"const": "weekly"}, "by_day": {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"enum": ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]}}},
                    "required": ["freq", "by_day"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"freq": {"const": "monthly"}, "day": {"anyOf": [{"const": -1}, {"type": "integer", "minimum": 1, "maximum": 31}]}},
                    "required": ["freq", "day"],
                    "additionalProperties": False,
                },
            ]
        },
        "reminders": {
            "type": "array",
            "maxItems": 5,
            "items": {
                "type": "object",
                "properties": {"method": {"enum": ["popup", "email"]}, "minutes": {"type": "integer", "minimum": 0, "maximum": 40320}},
                "required": ["method", "minutes"],
                "additionalProperties": False,
            },
            "contains": {"properties": {"method": {"const": "popup"}}},
            "maxContains": 2,
        },
        "visibility": {"enum": ["default", "public", "private"]},
    },
    "required": ["title", "start", "end"],
    "additionalProperties": False,
    "if": {"required": ["all_day"], "properties": {"all_day": {"const": True}}},
    "then": {"properties": {"start": {"required": ["date"]}, "end": {"required": ["date"]}}},
}


def event_time(t, path):
    record(t, path)
    if "dateTime" in t:
        record(t, path, ("dateTime", "timeZone", "date") if bug("event-time-both") else ("dateTime", "timeZone"))
        fraction = r"(.[0-9]+)?" if bug("event-datetime-dot") else r"(\.[0-9]+)?"
        zone = r"Z" if bug("event-datetime-offset") else r"(Z|[+-][0-9]{2}:[0-9]{2})"
        matching(t["dateTime"], path + ".dateTime", r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}" + fraction + zone)
        if "timeZone" in t:
            text(t["timeZone"], path + ".timeZone", 1)
    else:
        record(t, path, ("date",), ("date",))
        matching(t["date"], path + ".date", r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def event_recurrence(r, path):
    record(r, path, None, ("freq",))
    freq = r["freq"]
    if freq == "daily":
        record(r, path, ("freq", "interval"))
        if "interval" in r:
            whole(r["interval"], path + ".interval", 1)
    elif freq == "weekly":
        record(r, path, ("freq", "by_day"), ("by_day",))
        days = array(r["by_day"], path + ".by_day", 1)
        for day in days:
            choice(day, path + ".by_day", ["MO", "TU", "WE", "TH", "FR", "SA", "SU"])
        if has_duplicates(days) and not bug("event-byday-duplicate"):
            fail(path + ".by_day", "must be unique")
    elif freq == "monthly":
        record(r, path, ("freq", "day"), ("day",))
        day = r["day"]
        if bug("event-day-negative") and not (is_number(day) and day >= 0):
            fail(path + ".day", "must be a number")
        if not same(day, -1):
            whole(day, path + ".day", 1, 31)
    else:
        fail(path + ".freq", "is unknown")


def create_event(a):
    record(a, "arguments", CREATE_EVENT["properties"], ("title", "start", "end"))
    text(a["title"], "title", 1, 200)
    event_time(a["start"], "start")
    event_time(a["end"], "end")
    if "all_day" in a:
        flag(a["all_day"], "all_day")
        if a["all_day"] or bug("event-allday-present"):
            for key in ("start",) if bug("event-allday-start-only") else ("start", "end"):
                if "date" not in a[key]:
                    fail(key, "an all-day event needs a date")
    if "attendees" in a:
        for i, who in enumerate(array(a["attendees"], "attendees", 0, 50)):
            path = "attendees[%d]" % i
            record(who, path, ("email", "optional", "response"), ("email",))
            text(who["email"], path + ".email")
            if bug("event-email-plus") and re.search(r"[+][^@]*@", who["email"]):
                fail(path + ".email", "is no e-mail address")
            if "optional" in who and not (bug("event-optional-null") and who["optional"] is None):
                flag(who["optional"], path + ".optional")
            if "response" in who:
                choice(who["response"], path + ".response", ["needsAction", "accepted", "declined", "tentative"])
    if "recurrence" in a:
        event_recurrence(a["recurrence"], "recurrence")
    if "reminders" in a:
        popups = 0
        rows = array(a["reminders"], "reminders", 0, 5)
        for i, r in enumerate(rows):
            path = "reminders[%d]" % i
            record(r, path, ("method", "minutes"), ("method", "minutes"))
            popups += choice(r["method"], path + ".method", ["popup", "email"]) == "popup"
            if bug("event-minutes-zero") and not r["minutes"]:
                fail(path, "minutes is required")
            whole(r["minutes"], path + ".minutes", 0, 40320)
        if bug("event-contains-all"):
            if popups < len(rows):
                fail("reminders", "must be popups")
        if popups == 0 and not bug("event-contains-none"):
            fail("reminders", "at least one must be a popup")
        if popups > 2 and not bug("event-contains-max"):
            fail("reminders", "at most two may be popups")
    if "visibility" in a:
        choice(a["visibility"], "visibility", ["default", "public", "private"])


# ---------------------------------------------------------------- write_file

WRITE_FILE = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 255, "not": {"pattern": "(^|/)\\.\\.(/|$)"}},
        "content": {"type": "string", "maxLength": 5000},
        "encoding": {"enum": ["utf-8", "base64", "latin-1"]},
        "mode": {"type": "string", "pattern": "^0?[0-7]{3}$"},
        "expected_size": {"type": "integer", "minimum": 0, "maximum": 9007199254740992},
        "metadata": {
            "type": "object",
            "propertyNames": {"pattern": "^[a-z][a-z0-9_-]*$", "maxLength": 20},
            "additionalProperties": {"type": "string", "maxLength": 100},
            "maxProperties": 5,
        },
        "overwrite": {"type": "boolean"},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
    "if": {"required": ["encoding"], "properties": {"encoding": {"const": "base64"}}},
    "then": {"properties": {"content": {"pattern": "^[A-Za-z0-9+/]*={0,2}$"}}},
}


def write_file(a):
    record(a, "arguments", WRITE_FILE["properties"], ("path", "content"))
    path = text(a["path"], "path", 1, 255)
    if bug("file-path-dots"):
        climbs = ".." in path
    else:
        climbs = ".." in path.split("/")
    if climbs:
        fail("path", "must not climb out of the folder")
    content = text(a["content"], "content", 0, 5000)
    encoding = None
    if "encoding" in a:
        encoding = choice(a["encoding"], "encoding", ["utf-8", "base64", "latin-1"])
    elif bug("file-base64-default"):
        encoding = "base64"
    if encoding == "base64" and not bug("file-base64-ignored"):
        if not re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", content):
            fail("content", "is no base64")
    if "mode" in a:
        mode = a["mode"]
        if bug("file-mode-integer") and isinstance(mode, int) and not isinstance(mode, bool):
            mode = str(mode)
        if bug("file-mode-isdigit"):
            if not (text(mode, "mode").isdigit() and len(mode.removeprefix("0")) <= 3 and 3 <= len(mode) <= 4):
                fail("mode", "must be octal")
        else:
            matching(mode, "mode", r"0?[0-7]{3}")
    if "expected_size" in a:
        size = a["expected_size"]
        if bug("file-size-exponent") and not isinstance(size, int) and "E" in str(size):
            fail("expected_size", "must be an integer")
        whole(size, "expected_size", 0)
        if bug("file-size-float") and size < 10 ** 300:
            size = float(size)
        if bug("file-size-int32") and size > 2147483647:
            fail("expected_size", "is too large")
        if size > 9007199254740992:
            fail("expected_size", "is too large")
    if "metadata" in a:
        meta = record(a["metadata"], "metadata")
        if len(meta) > 5 and not bug("file-meta-max"):
            fail("metadata", "has too many members")
        for key, value in meta.items():
            if not bug("file-meta-names"):
                matching(key, "metadata name", r"[a-z][a-z0-9_-]*")
            if not bug("file-meta-name-length"):
                text(key, "metadata name", 0, 20)
            if not bug("file-meta-values"):
                text(value, "metadata." + key, 0, 100)
    if "overwrite" in a:
        flag(a["overwrite"], "overwrite")


# ---------------------------------------------------------------- edit_file

EDIT_FILE = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "edits": {
            "type": "array",
            "minItems": 1,
            "maxItems": 50,
            "items": {
                "type": "object",
                "properties": {
                    "old_text": {"type": "string", "minLength": 1},
                    "new_text": {"type": "string"},
                    "count": {"type": "integer", "minimum": 1, "default": 1},
                },
                "required": ["old_text", "new_text"],
                "additionalProperties": False,
            },
        },
        "line_range": {
            "type": "array",
            "prefixItems": [{"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 1}],
            "items": False,
            "minItems": 2,
        },
        "dry_run": {"type": "boolean"},
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}


def edit_file(a):
    record(a, "arguments", EDIT_FILE["properties"], ("path", "edits"))
    text(a["path"], "path", 1)
    edits = a["edits"]
    if bug("edit-edits-json") and isinstance(edits, str):
        try:
            edits = json.loads(edits)
        except ValueError:
            pass
    for i, e in enumerate(array(edits, "edits", 0 if bug("edit-edits-empty") else 1, 50)):
        path = "edits[%d]" % i
        required = ("old_text",) if bug("edit-new-missing") else ("old_text", "new_text")
        record(e, path, None if bug("edit-item-extra") else ("old_text", "new_text", "count"), required)
        text(e["old_text"], path + ".old_text", 1)
        if bug("edit-new-empty") and not e["new_text"]:
            fail(path, "new_text is required")
        if "new_text" in e:
            text(e["new_text"], path + ".new_text")
        if "count" in e:
            whole(e["count"], path + ".count", 1)
    if "line_range" in a:
        span = array(a["line_range"], "line_range", 0 if bug("edit-range-short") else 2, None if bug("edit-range-extra") else 2)
        for i, line in enumerate(span[:2]):
            whole(line, "line_range[%d]" % i, 1)
    if "dry_run" in a:
        flag(a["dry_run"], "dry_run")


# ---------------------------------------------------------------- create_payment

CREATE_PAYMENT = {
    "$schema": DIALECT,
    "type": "object",
    "properties": {
        "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 999999.99, "multipleOf": 0.01},
        "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "method": {
            "oneOf": [
                {"type": "object", "properties": {"type": {"const": "card"}, "token": {"type": "string", "pattern": "^tok_[A-Za-z0-9]{10,24}$"}}, "required": ["type", "token"], "additionalProperties": False},
                {"type": "object", "properties": {"type": {"const": "bank"}, "iban": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$"}}, "required": ["type", "iban"], "additionalProperties": False},
                {"type": "object", "properties": {"type": {"const": "wallet"}, "provider": {"enum": ["apple", "google"]}}, "required": ["type", "provider"], "additionalProperties": False},
            ]
        },
        "idempotency_key": {"type": "string", "format": "uuid"},
        "capture": {"type": "boolean"},
        "capture_before": {"type": "integer", "minimum": 0},
        "installments": {"enum": [1, 3, 6, 12]},
        "tip_percent": {"type": "integer", "minimum": 0, "maximum": 30, "multipleOf": 5},
        "descriptor": {"type": "string", "minLength": 5, "maxLength": 22},
        "billing": {
            "type": "object",
            "properties": {"line1": {"type": "string", "minLength": 1}, "line2": {"type": ["string", "null"]}, "city": {"type": "string", "minLength": 1}, "country": {"type": "string", "pattern": "^[A-Z]{2}$"}},
            "required": ["line1", "city", "country"],
        },
    },
    "required": ["amount", "currency", "method"],
    "dependentRequired": {"capture_before": ["capture"], "installments": ["billing"]},
    "additionalProperties": False,
}


def payment_method(m, path):
    record(m, path, None, ("type",))
    kind = m["type"]
    if bug("pay-method-fallback") and isinstance(kind, str) and kind not in ("card", "bank", "wallet"):
        kind = "card"
    if kind == "card":
        record(m, path, ("type", "token"), ("token",))
        matching(m["token"], path + ".token", r"tok_[A-Za-z0-9]{10,24}")
    elif kind == "bank":
        if bug("pay-method-bank-unchecked"):
            return
        record(m, path, ("type", "iban"), ("iban",))
        matching(m["iban"], path + ".iban", r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
    elif kind == "wallet" and not bug("pay-method-wallet"):
        record(m, path, ("type", "provider"), ("provider",))
        choice(m["provider"], path + ".provider", ["apple", "google"])
    else:
        fail(path + ".type", "is unknown")


def create_payment(a):
    record(a, "arguments", CREATE_PAYMENT["properties"], ("amount", "currency", "method"))
    amount = a["amount"]
    if bug("pay-amount-string") and isinstance(amount, str) and re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,2})?", amount):
        amount = Decimal(amount)
    number(amount, "amount", None, Decimal("999999.99"), 0)
    if bug("pay-amount-modulo") and not (float(amount) / 0.01).is_integer():
        fail("amount", "must be in cents")
    if not money(amount) and not bug("pay-amount-fraction"):
        fail("amount", "must be in cents")
    currency = text(a["currency"], "currency")
    if bug("pay-currency-lower"):
        currency = currency.upper()
    if bug("pay-currency-isupper"):
        if not (len(currency) == 3 and currency.isalpha() and currency.isupper()):
            fail("currency", "is no currency code")
    else:
        matching(currency, "currency", r"[A-Z]{3}")
    payment_method(a["method"], "method")
    if "idempotency_key" in a:
        key = text(a["idempotency_key"], "idempotency_key")
        if bug("pay-key-upper") and re.fullmatch(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", key) and key != key.lower():
            fail("idempotency_key", "is no UUID")
    if "capture" in a:
        flag(a["capture"], "capture")
    if "capture_before" in a:
        whole(a["capture_before"], "capture_before", 0)
        if "capture" not in a:
            fail("capture_before", "needs capture")
    if "installments" in a:
        n = a["installments"]
        if bug("pay-installments-range"):
            whole(n, "installments", 1, 12)
        else:
            choice(n, "installments", [1, 3, 6, 12])
        if "billing" not in a and not bug("pay-dependent-second"):
            fail("installments", "needs billing")
    if "tip_percent" in a:
        tip = int(whole(a["tip_percent"], "tip_percent", 0, 30))
        if bug("pay-tip-zero") and (not tip or tip % 5):
            fail("tip_percent", "must be a multiple of 5")
        if tip % 5 and not bug("pay-tip-multiple"):
            fail("tip_percent", "must be a multiple of 5")
    if "descriptor" in a:
        limit = 22
        if bug("pay-descriptor-below"):
            limit = 21
        if bug("pay-descriptor-above"):
            limit = 23
        text(a["descriptor"], "descriptor", 5, limit)
    if "billing" in a:
        bill = record(a["billing"], "billing", None, ("line1",) if bug("pay-billing-city") else ("line1", "city", "country"))
        for key in ("line1", "city"):
            if key in bill:
                text(bill[key], "billing." + key, 1)
        if "country" in bill:
            matching(bill["country"], "billing.country", r"[A-Z]{2}")
        if bill.get("line2") is not None:
            text(bill["line2"], "billing.line2")
        if bug("pay-billing-closed"):
            record(bill, "billing", ("line1", "line2", "city", "country"))


# ---------------------------------------------------------------- send_message

SEND_MESSAGE = {
    "type": "object",
    "properties": {
        "channel": {
            "anyOf": [
                {"type": "string", "pattern": "^C[A-Z0-9]{8,10}$"},
                {"type": "string", "pattern": "^#[a-z0-9_-]{1,79}$"},
                {"type": "object", "properties": {"user": {"type": "string", "pattern": "^U[A-Z0-9]{8,10}$"}}, "required": ["user"], "additionalProperties": False},
            ]
        },
        "text": {"type": "string", "minLength": 1, "maxLength": 280},
        "image": {
            "type": "object",
            "properties": {"url": {"type": "string", "minLength": 1}, "alt": {"type": "string", "minLength": 2}},
            "required": ["url", "alt"],
            "additionalProperties": False,
        },
        "thread_ts": {"type": ["string", "null"], "pattern": "^[0-9]+\\.[0-9]{6}$"},
        "mentions": {"type": "array", "items": {"type": ["string", "integer"]}, "uniqueItems": True, "maxItems": 20},
        "priority": {"enum": [0, 1, 2]},
        "unfurl": {"type": "boolean"},
    },
    "required": ["channel", "text"],
    "additionalProperties": False,
}


def send_message(a):
    record(a, "arguments", SEND_MESSAGE["properties"], ("channel", "text"))
    channel = a["channel"]
    if isinstance(channel, str):
        name = r"#[a-z0-9_-]{1,79}"
        if bug("msg-channel-name"):
            name = r"C[A-Z0-9]{8,10}"
        if not re.fullmatch(r"C[A-Z0-9]{8,10}", channel) and not re.fullmatch(name, channel):
            fail("channel", "is no channel")
    elif bug("msg-channel-object") and isinstance(channel, dict):
        pass
    else:
        record(channel, "channel", ("user",), ("user",))
        matching(channel["user"], "channel.user", r"U[A-Z0-9]{8,10}")
    body = a["text"]
    if bug("msg-text-number") and is_number(body):
        body = str(body)
    text(body, "text", 1, 280)
    if "image" in a:
        image = record(a["image"], "image", ("url", "alt"), ("url", "alt"))
        text(image["url"], "image.url", 1)
        alt = text(image["alt"], "image.alt")
        length = len(alt)
        if bug("msg-alt-utf16"):
            length = len(alt.encode("utf-16-le", "surrogatepass")) // 2
        if length < 2:
            fail("image.alt", "is too short")
    if "thread_ts" in a and a["thread_ts"] is not None:
        ts = text(a["thread_ts"], "thread_ts")
        if bug("msg-thread-dot"):
            pattern = r"[0-9]+.[0-9]{6}"
        elif bug("msg-thread-digits"):
            pattern = r"\d+\.\d{6}"
        else:
            pattern = r"[0-9]+\.[0-9]{6}"
        matching(ts, "thread_ts", pattern)
    if "mentions" in a:
        who = array(a["mentions"], "mentions", 0, 20)
        for i, m in enumerate(who):
            if not isinstance(m, str):
                whole(m, "mentions[%d]" % i)
        if bug("msg-mentions-text"):
            if len(set(map(str, who))) < len(who):
                fail("mentions", "must be unique")
        if has_duplicates(who) and not (bug("msg-mentions-repr") and len({(type(m), str(m)) for m in who}) == len(who)):
            fail("mentions", "must be unique")
    if "priority" in a:
        p = a["priority"]
        if bug("msg-priority-zero") and not p:
            fail("priority", "is missing")
        if bug("msg-priority-false") and p is False:
            p = 0
        choice(p, "priority", [0, 1, 2])
    if "unfurl" in a:
        flag(a["unfurl"], "unfurl")


# ---------------------------------------------------------------- set_geofence

SET_GEOFENCE = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {
        "position": {
            "type": "array",
            "description": "Longitude, latitude and, if wanted, altitude",
            "prefixItems": [{"type": "number", "minimum": -180, "maximum": 180}, {"type": "number", "minimum": -90, "maximum": 90}],
            "items": {"type": "number"},
            "minItems": 2,
            "maxItems": 3,
        }
    },
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 60},
        "shape": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"type": {"const": "circle"}, "center": {"$ref": "#/$defs/position"}, "radius_m": {"type": "number", "exclusiveMinimum": 0, "maximum": 100000}},
                    "required": ["type", "center", "radius_m"],
                },
                {
                    "type": "object",
                    "properties": {"type": {"const": "polygon"}, "ring": {"type": "array", "minItems": 4, "maxItems": 100, "items": {"$ref": "#/$defs/position"}}},
                    "required": ["type", "ring"],
                },
            ]
        },
        "notify": {"type": "array", "items": {"enum": ["enter", "leave", "dwell"]}, "uniqueItems": True, "minItems": 1},
    },
    "required": ["name", "shape"],
    "additionalProperties": False,
}


def position(p, path):
    array(p, path, 0 if bug("geo-position-zip") else 2, 3)
    if bug("geo-altitude") and len(p) != 2:
        fail(path, "must be a pair")
    if bug("geo-position-falsy") and not all(p):
        fail(path, "must be a pair of numbers")
    limits = (180, 90)
    if bug("geo-longitude-90"):
        limits = (90, 90)
    if bug("geo-latitude-180"):
        limits = (180, 180)
    for v, limit in zip(p, limits):
        number(v, path, -limit, limit)
    for v in p[2:]:
        if not bug("geo-altitude-type"):
            number(v, path)


def set_geofence(a):
    record(a, "arguments", SET_GEOFENCE["properties"], ("name", "shape"))
    text(a["name"], "name", 1, 60)
    shape = record(a["shape"], "shape", None, ("type",))
    if shape["type"] == "circle":
        record(shape, "shape", None, ("center", "radius_m"))
        position(shape["center"], "shape.center")
        number(shape["radius_m"], "shape.radius_m", None, 100000, 0)
    elif shape["type"] == "polygon":
        record(shape, "shape", None, ("ring",))
        ring = array(shape["ring"], "shape.ring", 3 if bug("geo-ring-three") else 4, 100)
        for i, p in enumerate(ring):
            if bug("geo-ring-first") and i > 0:
                break
            position(p, "shape.ring[%d]" % i)
        if bug("geo-ring-closed") and not same(ring[0], ring[-1]):
            fail("shape.ring", "must be closed")
    else:
        fail("shape.type", "is unknown")
    if "notify" in a:
        for n in array(a["notify"], "notify", 1):
            choice(n, "notify", ["enter", "leave", "dwell"])
        if has_duplicates(a["notify"]):
            fail("notify", "must be unique")


# ---------------------------------------------------------------- deploy_service

DEPLOY_SERVICE = {
    "type": "object",
    "properties": {
        "image": {"type": "string", "pattern": "^[a-z0-9./-]+(:[A-Za-z0-9._-]{1,128})?$"},
        "replicas": {"type": "integer", "minimum": 0, "maximum": 50},
        "env": {"type": "object", "patternProperties": {"^[A-Z_][A-Z0-9_]*$": {"type": "string"}}, "additionalProperties": False},
        "ports": {
            "type": "array",
            "maxItems": 10,
            "items": {
                "type": "object",
                "properties": {"port": {"type": "integer", "minimum": 1, "maximum": 65535}, "protocol": {"enum": ["TCP", "UDP"]}},
                "required": ["port"],
                "additionalProperties": False,
            },
        },
        "memory": {"type": "string", "pattern": "^[0-9]+(Mi|Gi)$"},
        "strategy": {"enum": ["rolling", "recreate", "canary"]},
        "max_surge": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]{1,3}%$"}]},
        "canary_weight": {"type": "integer", "minimum": 1, "maximum": 100},
    },
    "required": ["image", "replicas"],
    "additionalProperties": False,
    "allOf": [
        {"if": {"properties": {"strategy": {"const": "rolling"}}}, "then": {"required": ["max_surge"]}},
        {
            "if": {"required": ["strategy"], "properties": {"strategy": {"const": "canary"}}},
            "then": {"required": ["canary_weight"]},
            "else": {"properties": {"canary_weight": False}},
        },
    ],
}


def deploy_service(a):
    if bug("deploy-replicas-zero") and not a.get("replicas"):
        fail("replicas", "is required")
    record(a, "arguments", DEPLOY_SERVICE["properties"], ("image", "replicas"))
    matching(a["image"], "image", r"[a-z0-9./-]+(:[A-Za-z0-9._-]{1,128})?")
    replicas = a["replicas"]
    if bug("deploy-replicas-truncated") and is_number(replicas) and abs(replicas) < 10 ** 9:
        replicas = int(replicas)
    whole(replicas, "replicas", 0, 51 if bug("deploy-replicas-51") else 50)
    if "env" in a:
        env = record(a["env"], "env")
        if bug("deploy-env-empty") and not env:
            fail("env", "is missing")
        for key, value in env.items():
            if bug("deploy-env-underscore"):
                matching(key, "env name", r"[A-Z][A-Z0-9_]*")
            elif not bug("deploy-env-names"):
                matching(key, "env name", r"[A-Z_][A-Z0-9_]*")
            if not (bug("deploy-env-numbers") and is_number(value)):
                text(value, "env." + key)
    if "ports" in a:
        for i, p in enumerate(array(a["ports"], "ports", 0, 10)):
            path = "ports[%d]" % i
            record(p, path, ("port", "protocol"), ("port",))
            whole(p["port"], path + ".port", 1024 if bug("deploy-port-privileged") else 1, 65536 if bug("deploy-port-65536") else 65535)
            if "protocol" in p:
                choice(p["protocol"], path + ".protocol", ["TCP", "UDP"])
    if "memory" in a:
        if bug("deploy-memory-suffix"):
            if not text(a["memory"], "memory").endswith(("Mi", "Gi")):
                fail("memory", "needs a unit")
        else:
            matching(a["memory"], "memory", r"[0-9]+(Mi|Gi)")
    if "max_surge" in a:
        surge = a["max_surge"]
        if isinstance(surge, str):
            matching(surge, "max_surge", r"[0-9]{1,3}%")
        else:
            whole(surge, "max_surge", 0)
    if "canary_weight" in a:
        whole(a["canary_weight"], "canary_weight", 1, 100)
    if "strategy" in a:
        choice(a["strategy"], "strategy", ["rolling", "recreate", "canary"])
    rolling = a.get("strategy", None if bug("deploy-rolling-absent") else "rolling") == "rolling"
    if rolling and "max_surge" not in a:
        fail("max_surge", "is required to roll")
    if a.get("strategy") == "canary":
        if "canary_weight" not in a and not bug("deploy-canary-then"):
            fail("canary_weight", "is required")
    elif "canary_weight" in a and not bug("deploy-canary-else"):
        fail("canary_weight", "is for canary only")


# ---------------------------------------------------------------- save_tree

SAVE_TREE = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {
        "short": {"type": "string", "maxLength": 40},
        "node": {
            "type": "object",
            "properties": {
                "name": {"$ref": "#/$defs/short", "minLength": 1},
                "kind": {"enum": ["folder", "file"]},
                "note": {"$ref": "#/$defs/short", "minLength": 3},
                "size": {"type": "integer", "minimum": 0},
                "children": {"type": "array", "maxItems": 5, "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name", "kind"],
            "additionalProperties": False,
            "if": {"properties": {"kind": {"const": "file"}}},
            "then": {"properties": {"children": False}},
        },
    },
    "properties": {"volume": {"$ref": "#/$defs/short"}, "root": {"$ref": "#/$defs/node"}},
    "required": ["root"],
    "additionalProperties": False,
}


def tree_node(n, path, depth=0):
    if bug("tree-depth-limit") and depth > 7:
        fail(path, "is nested too deeply")
    inner = depth > 0
    required = () if inner and bug("tree-required-root") else ("name", "kind")
    known = None if inner and bug("tree-extra-nested") else ("name", "kind", "note", "size", "children")
    record(n, path, known, required)
    if "name" in n:
        text(n["name"], path + ".name", 1, 40)
    if "kind" in n:
        choice(n["kind"], path + ".kind", ["folder", "file"])
    if "note" in n:
        text(n["note"], path + ".note", 0 if bug("tree-ref-sibling") else 3, 40)
    if "size" in n:
        whole(n["size"], path + ".size", 0)
    if "children" in n and not (bug("tree-children-null") and n["children"] is None):
        kids = array(n["children"], path + ".children", 1 if bug("tree-children-empty") else 0, 5)
        if n.get("kind", "file") == "file" and not (inner and bug("tree-file-nested")) and not (bug("tree-required-root") and "kind" not in n):
            fail(path + ".children", "a file has no children")
        for i, kid in enumerate(kids):
            if bug("tree-first-child") and i > 0:
                break
            tree_node(kid, "%s.children[%d]" % (path, i), depth + 1)


def save_tree(a):
    record(a, "arguments", ("volume", "root"), ("root",))
    if "volume" in a:
        text(a["volume"], "volume", 0, 40)
    tree_node(a["root"], "root")


# ---------------------------------------------------------------- configure_alert

CONFIGURE_ALERT = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {
        "base": {
            "properties": {"metric": {"type": "string", "pattern": "^[a-z_]+(\\.[a-z_]+)*$"}, "version": {"const": 1}},
            "required": ["metric"],
        }
    },
    "allOf": [{"$ref": "#/$defs/base"}],
    "properties": {
        "threshold": {"type": "number", "minimum": -1000000, "maximum": 1000000},
        "ratio": {"type": "number", "minimum": 0, "maximum": 1},
        "severity": {"enum": ["low", "high", True, None]},
        "baseline": {"const": {"type": "mean", "days": 7}},
        "channels": {"type": "array", "maxItems": 8, "uniqueItems": True},
        "silence": {"oneOf": [{"type": "boolean"}, {"type": "object", "properties": {"minutes": {"type": "integer", "minimum": 1}}, "required": ["minutes"]}]},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
    },
    "required": ["threshold"],
    "unevaluatedProperties": False,
}


def alert_channels_differ(rows):
    if bug("alert-channels-one-true"):
        return not any(x == y for i, x in enumerate(rows) for y in rows[:i])
    if bug("alert-channels-key-order"):
        seen = [json.dumps(x, default=str) for x in rows]
        return len(set(seen)) == len(seen)
    if bug("alert-channels-objects"):
        return not has_duplicates([x for x in rows if not isinstance(x, (dict, list))])
    return not has_duplicates(rows)


def configure_alert(a):
    known = set(CONFIGURE_ALERT["properties"]) | {"metric", "version"}
    required = ("threshold",) if bug("alert-base-required") else ("metric", "threshold")
    record(a, "arguments", None if bug("alert-unevaluated") else known, required)
    if "metric" in a:
        matching(a["metric"], "metric", r"[a-z_]+(\.[a-z_]+)*")
    if "version" in a:
        version = a["version"]
        if bug("alert-version-true") and version is True:
            version = 1
        if bug("alert-version-float") and type(version) is not int:
            fail("version", "must be 1")
        if not same(version, 1):
            fail("version", "must be 1")
    t = a["threshold"]
    if bug("alert-threshold-negative") and not (is_number(t) and t >= 0):
        fail("threshold", "must be a number")
    if bug("alert-threshold-exponent") and not (is_number(t) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", str(t))):
        fail("threshold", "must be a number")
    number(t, "threshold", -1000000, 1000000)
    if "ratio" in a:
        if bug("alert-ratio-float") and not isinstance(a["ratio"], Decimal):
            fail("ratio", "must be a float")
        number(a["ratio"], "ratio", 0, 1)
    if "severity" in a:
        level = a["severity"]
        if bug("alert-severity-null") and level is None:
            fail("severity", "is missing")
        if bug("alert-severity-one") and is_number(level) and level == 1:
            level = True
        choice(level, "severity", ["low", "high", True, None])
    if "baseline" in a:
        base = a["baseline"]
        wanted = {"type": "mean", "days": 7}
        if bug("alert-baseline-keys") and isinstance(base, dict) and base.get("type") == "mean":
            base = wanted
        if bug("alert-baseline-order") and isinstance(base, dict) and list(base) != list(wanted):
            fail("baseline", "must be the mean of 7 days")
        if not same(base, wanted):
            fail("baseline", "must be the mean of 7 days")
    if "channels" in a:
        if not alert_channels_differ(array(a["channels"], "channels", 0, 8)):
            fail("channels", "must be unique")
    if "silence" in a:
        s = a["silence"]
        if bug("alert-silence-false") and not s:
            fail("silence", "is missing")
        if not isinstance(s, bool):
            record(s, "silence", None, ("minutes",))
            whole(s["minutes"], "silence.minutes", 1)
    if "labels" in a:
        labels = record(a["labels"], "labels")
        if not labels:
            fail("labels", "must not be empty")
        for key, value in labels.items():
            if not bug("alert-labels-values"):
                text(value, "labels." + key)


# ---------------------------------------------------------------- book_room

BOOK_ROOM = {
    "$schema": DIALECT,
    "type": "object",
    "description": "Formats are asserted here: a value that is not of its format is rejected.",
    "properties": {
        "room": {"type": "string", "format": "uuid"},
        "date": {"type": "string", "format": "date", "description": "A day of the calendar (format asserted)"},
        "starts_at": {"type": "string", "format": "date-time", "description": "RFC 3339 (format asserted)"},
        "email": {"type": "string", "format": "email"},
        "panel_ip": {"type": "string", "format": "ipv4"},
        "seats": {"type": "integer", "minimum": 1, "maximum": 400},
    },
    "required": ["room", "date"],
    "additionalProperties": False,
}


def days_in_month(year, month):
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def is_date(s):
    m = re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", s)
    if not m:
        return False
    year, month, day = map(int, m.groups())
    if bug("room-date-shape"):
        return 1 <= month <= 12 and 1 <= day <= 31
    if bug("room-date-leap") and (month, day) == (2, 29):
        return False
    return 1 <= month <= 12 and 1 <= day <= days_in_month(year, month)


def is_date_time(s):
    m = re.fullmatch(r"(.{10})([Tt])([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})", s)
    if not m or not is_date(m.group(1)):
        return False
    if bug("room-time-lower") and ("t" in s or "z" in s):
        return False
    if bug("room-time-fraction") and len(m.group(6) or "") > 4:
        return False
    hour, minute, second = int(m.group(3)), int(m.group(4)), int(m.group(5))
    offset = 0
    zone = m.group(7)
    if zone not in "Zz":
        zone_hour, zone_minute = int(zone[1:3]), int(zone[4:6])
        if zone_hour > 23 or zone_minute > 59:
            return False
        offset = (zone_hour * 60 + zone_minute) * (1 if zone[0] == "+" else -1)
    if hour > 23 or minute > 59 or second > 60:
        return False
    return second < 60 or (hour * 60 + minute - offset) % 1440 == 1439


def is_email(s):
    m = re.fullmatch(r"(.+)@([^@]+)", s, re.S)
    if not m:
        return False
    if bug("room-email-at"):
        return True
    local, domain = m.groups()
    atom = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
    if not re.fullmatch(r"%s(\.%s)*|\"([ !#-\[\]-~]|\\[ -~])*\"" % (atom, atom), local):
        return False
    label = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
    if re.fullmatch(r"%s(\.%s)*" % (label, label), domain):
        return True
    return domain.startswith("[") and domain.endswith("]") and is_ipv4(domain[1:-1])


def is_ipv4(s):
    octets = s.split(".")
    if bug("room-ip-octet"):
        return len(octets) == 4 and all(re.fullmatch(r"[0-9]{1,3}", o) for o in octets)
    return len(octets) == 4 and all(re.fullmatch(r"0|[1-9][0-9]{0,2}", o) and int(o) < 256 for o in octets)


def is_uuid(s):
    if bug("room-uuid-hex"):
        return bool(re.fullmatch(r"[0-9a-fA-F]{32}", s.replace("-", "")))
    return bool(re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", s))


def book_room(a):
    record(a, "arguments", BOOK_ROOM["properties"], ("room", "date"))
    for key, good in (("room", is_uuid), ("date", is_date), ("starts_at", is_date_time), ("email", is_email), ("panel_ip", is_ipv4)):
        if key in a and not good(text(a[key], key)):
            fail(key, "has not the format %s" % BOOK_ROOM["properties"][key]["format"])
    if "seats" in a:
        whole(a["seats"], "seats", 1, 400)


# ---------------------------------------------------------------- the server

TOOLS = [
    ("search_issues", "Search the issues of a repository.", SEARCH_ISSUES, search_issues, True),
    ("create_pull_request", "Open a pull request (simulated).", CREATE_PULL_REQUEST, create_pull_request, False),
    ("run_query", "Run an SQL query (simulated).", RUN_QUERY, run_query, True),
    ("filter_records", "Find records of a table by a nested filter.", FILTER_RECORDS, filter_records, True),
    ("browser_action", "Run steps in a browser (simulated).", BROWSER_ACTION, browser_action, False),
    ("create_event", "Create a calendar event (simulated).", CREATE_EVENT, create_event, False),
    ("write_file", "Write a file (simulated).", WRITE_FILE, write_file, False),
    ("edit_file", "Replace text in a file (simulated).", EDIT_FILE, edit_file, False),
    ("create_payment", "Create a payment (simulated).", CREATE_PAYMENT, create_payment, False),
    ("send_message", "Send a chat message (simulated).", SEND_MESSAGE, send_message, False),
    ("set_geofence", "Define a geofence (simulated).", SET_GEOFENCE, set_geofence, False),
    ("deploy_service", "Deploy a service (simulated).", DEPLOY_SERVICE, deploy_service, False),
    ("save_tree", "Save a tree of folders (simulated).", SAVE_TREE, save_tree, False),
    ("configure_alert", "Configure an alert (simulated).", CONFIGURE_ALERT, configure_alert, False),
    ("book_room", "Book a room (simulated). Formats are asserted.", BOOK_ROOM, book_room, False),
]
CHECKS = {name: check for name, _, _, check, _ in TOOLS}


def parse_float(s):
    try:
        return Decimal(s)
    except ArithmeticError:
        return Decimal("1E+999999")


def parse(s):
    return json.loads(s, parse_float=parse_float)


def judge(tool, arguments):
    """None if the tool accepts the arguments, else what is wrong."""
    try:
        CHECKS[tool](arguments)
    except Invalid as error:
        return str(error)
    return None


def error(code, message):
    return {"error": {"code": code, "message": message}}


def tools():
    return [
        {"name": name, "description": about, "inputSchema": schema,
         "annotations": {"readOnlyHint": True} if read_only else {"readOnlyHint": False, "destructiveHint": False}}
        for name, about, schema, _, read_only in TOOLS]


def handle(method, params):
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {"result": {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "handwritten-validators", "version": "1.0.0"},
        }}
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": tools()}}
    if method == "tools/call":
        tool, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(tool, str) or tool not in CHECKS:
            return error(-32602, "Unknown tool: %s" % (tool,))
        if not isinstance(arguments, dict):
            return error(-32602, "arguments must be an object")
        wrong = judge(tool, arguments)
        if wrong is None:
            return {"result": {"content": [{"type": "text", "text": "%s: done" % tool}]}}
        return {"result": {"content": [{"type": "text", "text": "Invalid arguments: " + wrong}], "isError": True}}
    return error(-32601, "Method not found: %s" % (method,))


def answer(message):
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return dict({"jsonrpc": "2.0", "id": None}, **error(-32600, "Invalid request"))
    if "method" not in message or not isinstance(message["method"], str):
        if "result" in message or "error" in message:
            return None
        return dict({"jsonrpc": "2.0", "id": message.get("id")}, **error(-32600, "Invalid request"))
    if "id" not in message:
        return None
    params = message.get("params", {})
    if not isinstance(params, dict):
        reply = error(-32602, "params must be an object")
    else:
        try:
            reply = handle(message["method"], params)
        except Exception as problem:
            reply = error(-32603, "Internal error: %s" % type(problem).__name__)
    return dict({"jsonrpc": "2.0", "id": message["id"]}, **reply)


def serve():
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        try:
            message = parse(line.decode("utf-8"))
        except (ValueError, RecursionError):
            reply = dict({"jsonrpc": "2.0", "id": None}, **error(-32700, "Parse error"))
        else:
            if isinstance(message, list) and message:
                reply = [r for r in map(answer, message) if r is not None] or None
            else:
                reply = answer(message)
        if reply is not None:
            sys.stdout.buffer.write(json.dumps(reply, default=float).encode("utf-8") + b"\n")
            sys.stdout.buffer.flush()


def read_faults():
    with open(os.path.join(HERE, "faults.tsv"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return rows


def check():
    global FAULT
    problems = []
    rows = read_faults()
    with open(os.path.abspath(__file__), encoding="utf-8") as f:
        in_code = set(re.findall(r'bug\("([a-z0-9-]+)"\)', f.read()))
    names = [r[0] for r in rows]
    for name in sorted(in_code ^ set(names)):
        problems.append("%s is not both in the code and in faults.tsv" % name)
    for name in {n for n in names if names.count(n) > 1}:
        problems.append("%s is listed twice" % name)
    for row in rows:
        if len(row) != 7 or not all(row):
            problems.append("%s: row has a wrong number of columns or an empty one" % row[0])
            continue
        name, tool, _, effect, arguments, source, _ = row
        if tool not in CHECKS or effect not in ("accepts", "rejects") or not re.fullmatch(r"[\w.-]+/[\w.-]+#[0-9]+", source):
            problems.append("%s: wrong tool, effect or source" % name)
            continue
        if len(arguments.encode()) > 10000:
            problems.append("%s: witness too long" % name)
        FAULT = None
        right = judge(tool, parse(arguments))
        if (right is None) != (effect == "rejects"):
            problems.append("%s: the server without fault says %s" % (name, right or "valid"))
        FAULT = name
        try:
            wrong = judge(tool, parse(arguments))
        except Exception as crash:
            problems.append("%s: crash %r" % (name, crash))
            continue
        if (wrong is None) != (effect == "accepts"):
            problems.append("%s: the server with the fault says %s" % (name, wrong or "valid"))
    FAULT = None
    for p in problems:
        print(p)
    return 1 if problems else 0


def main(args):
    global FAULT
    if args == ["--check"]:
        return check()
    if args == ["--tools"]:
        print(json.dumps(tools()))
        return 0
    if args == ["--list"]:
        print("\n".join(r[0] for r in read_faults()))
        return 0
    if len(args) == 2 and args[0] == "--fault":
        if args[1] not in {r[0] for r in read_faults()}:
            sys.exit("unknown fault: %s" % args[1])
        FAULT = args[1]
    elif args:
        sys.exit(__doc__)
    serve()
    return 0


if __name__ == "__main__":
    sys.setrecursionlimit(20000)
    sys.set_int_max_str_digits(0)
    threading.stack_size(256 * 1024 * 1024)
    status = []
    worker = threading.Thread(target=lambda: status.append(main(sys.argv[1:])))
    worker.start()
    worker.join()
    sys.exit(status[0] if status else 1)
