"""What all `show ... | json` outputs of Arista EOS share: the command's document, bare or wrapped by eAPI
(`{"jsonrpc", "result": [...]}`).
"""

from __future__ import annotations

from .base import BadFile, JsonValue, RawFile, mapping, pointer


def looks_like(file: RawFile, *keys: str) -> bool:
    """Whether a JSON object begins the file and all the keys occur near its start."""
    return file.head.startswith("{") and all(f'"{key}"' in file.head for key in keys)


def section(file: RawFile, key: str) -> tuple[JsonValue, str]:
    """The value under `key` of the command's document, and its JSON pointer. Raises BadFile if the document has no
    such key."""
    document, prefix = file.json, ""
    results = mapping(document).get("result")
    if isinstance(results, list):
        index = next((i for i, result in enumerate(results) if key in mapping(result)), 0)
        document, prefix = (results[index] if results else {}), pointer("result", index)
    if key not in mapping(document):
        raise BadFile(
            "unexpected-shape",
            f"no key {key!r} at the top; found {', '.join(sorted(mapping(document))[:5]) or 'nothing'}",
        )
    return mapping(document)[key], prefix + pointer(key)
