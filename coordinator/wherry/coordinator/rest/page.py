"""The OpenAPI document as a page for people: one file, no script, nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--accent:#2a6f97}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;margin:0;display:grid;grid-template-columns:15rem 1fr;min-height:100vh}
nav{border-right:1px solid var(--line);padding:1.5rem;position:sticky;top:0;height:100vh;overflow:auto}
nav a{display:block;color:inherit;text-decoration:none;padding:.15rem 0}nav a:hover{text-decoration:underline}
nav b{font-size:1.2rem}
main{padding:1.5rem 2.5rem;max-width:60rem;min-width:0}
h1{margin:0 0 .5rem}h2{margin:2.2rem 0 .3rem;border-bottom:1px solid var(--line);text-transform:capitalize}
details{border:1px solid var(--line);border-radius:6px;margin:.4rem 0;background:var(--soft)}
summary{cursor:pointer;padding:.45rem .7rem;display:flex;gap:.8rem;align-items:baseline;flex-wrap:wrap}
summary code{font-weight:600;overflow-wrap:anywhere}summary span:last-child{color:#777;margin-left:auto}
details>div{padding:.2rem 1rem 1rem}
.m{font:600 12px/1.6 ui-monospace,monospace;color:#fff;border-radius:4px;width:4.2rem;text-align:center;flex:none}
.get{background:#2a6f97}.put{background:#8a5a00}.post{background:#2d6a4f}.patch{background:#6a4c93}.delete{background:#a4161a}
table{border-collapse:collapse;width:100%;margin:.3rem 0 .8rem}
td,th{border-bottom:1px solid var(--line);padding:.25rem .5rem;text-align:left;vertical-align:top}
th{font-weight:600;font-size:13px}
pre{overflow:auto;background:var(--soft);border:1px solid var(--line);border-radius:4px;padding:.6rem;font-size:13px}
@media(max-width:50rem){body{display:block}nav{position:static;height:auto;border:0;padding-bottom:0}main{padding:1.5rem}}
"""
_REF = "#/components/schemas/"
_DEPTH_MAX = 4
"""How far schemas within schemas are shown."""


def page(document: Mapping[str, Any]) -> str:
    """Render a document."""
    info = document["info"]
    links = "".join(
        f'<a href="#{escape(tag["name"])}">{escape(tag["name"].capitalize())}</a>' for tag in document["tags"]
    )
    sections = "".join(_section(document, tag) for tag in document["tags"])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(info['title'])} REST API</title><style>{_STYLE}</style></head>"
        f'<body><nav><b>{escape(info["title"])}</b>{links}<a href="openapi.json">openapi.json</a></nav>'
        f"<main><h1>REST API</h1><p>{escape(info['description'])}</p>{sections}</main></body></html>"
    )


def _section(document: Mapping[str, Any], tag: Mapping[str, str]) -> str:
    shown = "".join(
        _operation(document, method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if tag["name"] in operation["tags"]
    )
    name = escape(tag["name"])
    return f'<section id="{name}"><h2>{name}</h2><p>{escape(tag["description"])}</p>{shown}</section>'


def _operation(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> str:
    return (
        f'<details id="{escape(operation["operationId"])}"><summary><span class="m {method}">{method.upper()}</span>'
        f"<code>{escape(path)}</code><span>{escape(operation['summary'])}</span></summary><div>"
        f"{''.join(_parts(document, operation))}</div></details>"
    )


def _parts(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[str]:
    if operation["parameters"]:
        rows = "".join(
            f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td>"
            f"<td>{escape(_kind(each['schema']))}</td><td>{escape(each['description'])}</td></tr>"
            for each in operation["parameters"]
        )
        yield f"<table><tr><th>Parameter</th><th>in</th><th>type</th><th></th></tr>{rows}</table>"
    if "requestBody" in operation:
        (content,) = operation["requestBody"]["content"].values()
        yield f"<p><b>Body</b></p>{_shape(document, content['schema'])}"
    for status, response in operation["responses"].items():
        if "$ref" in response:
            continue
        yield f"<p><b>{escape(status)}</b> {escape(response['description'])}</p>"
        for content in response.get("content", {}).values():
            yield _shape(document, content["schema"])
    errors = [status for status, response in operation["responses"].items() if "$ref" in response]
    yield f"<p><b>{escape(', '.join(errors))}</b> {{&quot;error_code&quot;, &quot;message&quot;}}</p>"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"{_kind(schema['items'])}, may repeat"
    kind = str(schema.get("type", ""))
    return f"{kind} = {json.dumps(schema['default'])}" if "default" in schema else kind


def _shape(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    shown = json.dumps(_example(document, schema, 0), indent=2, ensure_ascii=False)
    return f"<pre>{escape(shown)}</pre>"


def _example(document: Mapping[str, Any], schema: Mapping[str, Any], depth: int) -> Any:
    """What a value looks like: its structure, with types in the place of values."""
    if "$ref" in schema:
        return _example(document, document["components"]["schemas"][schema["$ref"].removeprefix(_REF)], depth)
    if depth > _DEPTH_MAX:
        return "…"
    if "oneOf" in schema:
        return _example(document, schema["oneOf"][0], depth)
    if "properties" in schema:
        return {name: _example(document, each, depth + 1) for name, each in schema["properties"].items()}
    if schema.get("type") == "object":
        return {"…": _example(document, schema["additionalProperties"], depth + 1)}
    if schema.get("type") == "array":
        return [_example(document, schema["items"], depth + 1)]
    kind = schema.get("type", "any")
    return _kind(schema) if "enum" in schema else " | ".join(kind) if isinstance(kind, list) else kind
