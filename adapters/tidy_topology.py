"""The tidy form, topology: which devices there are, what they are, and which ports are linked.

No standard; see `tidy_telemetry.py` for the form.

    {"nodes": [{"name": "gpu-l0h00", "role": "host"}, {"name": "leaf0", "role": "leaf"}],
     "links": [{"a": "gpu-l0h00", "a_port": "nic0", "b": "leaf0", "b_port": "Ethernet1", "speed_gbps": 100},
               {"a": "leaf0", "a_port": "Ethernet18", "b": "spine1", "b_port": "Ethernet1", "present": false},
               {"a": "leaf0", "a_port": "Ethernet18", "b": "spine2", "b_port": "Ethernet1", "planned": false}]}

| key                        | fact                                                                                |
|----------------------------|-------------------------------------------------------------------------------------|
| nodes: name, role          | Cable role: leaf-host where one end is a `host`, else leaf-spine; no role, no claim |
| links: a, a_port, b, b_port | Cable intended unless `planned` is false, observed unless `present` is false       |
| links: speed_gbps          | speed_bps (nominal); not there: not said                                            |

A link of the list is meant to be there and was seen to be there, both said by who wrote the list: hence the two facts.
A link that is planned but absent stays in the list with `"present": false`; one that is there but not as planned (a
cable in the wrong port) has `"planned": false`. Whether a link is up is telemetry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine.facts import Cable, Fact, ReadIssue
from .base import JsonValue, RawFile, Tally, mapping, number, pointer

_HEAD = re.compile(r'\{\s*"(?:nodes"\s*:\s*\[\s*\{[^{}]*"role"|links"\s*:\s*\[\s*\{[^{}]*"a_port")\s*:')
_ENDS = ("a", "a_port", "b", "b_port")


class TidyTopology:
    name = "tidy-topology"
    reads = "tidy form: topology.json"
    emits = ("Cable",)
    absence = (("Cable", "a link that is not listed is unknown, unless all links of the device are listed"),)

    def matches(self, file: RawFile) -> bool:
        return _HEAD.match(file.head) is not None

    def read(self, file: RawFile) -> Iterator[Fact | ReadIssue]:
        tally = Tally(file)
        document = mapping(file.json)
        roles: dict[str, str] = {}
        for index, one in enumerate(_rows(document, "nodes", tally)):
            name, role = mapping(one).get("name"), mapping(one).get("role")
            if isinstance(name, str) and isinstance(role, str) and name and role:
                roles[name] = role
            else:
                message = f"name and role are {name!r} and {role!r}, expected two words; the device's role is not known"
                tally.add("incomplete-node", pointer("nodes", index), message)
        for index, one in enumerate(_rows(document, "links", tally)):
            link, record = mapping(one), pointer("links", index)
            named = [link.get(key) for key in _ENDS]
            if not all(isinstance(name, str) and name for name in named):
                message = f"{', '.join(_ENDS)} are {', '.join(map(repr, named))}; expected four names; left out"
                tally.add("incomplete-link", record, message)
                continue
            speed = number(link.get("speed_gbps"))
            if speed is None and link.get("speed_gbps") is not None:
                message = f"speed_gbps is {link['speed_gbps']!r}, expected a number; the link is kept without a speed"
                tally.add("not-a-number", record, message)
            a_device, a_port, b_device, b_port = map(str, named)
            for kind, key in (("intended", "planned"), ("observed", "present")):
                if link.get(key) is False:
                    continue
                yield Cable(
                    a_device,
                    a_port,
                    b_device,
                    b_port,
                    "intended" if kind == "intended" else "observed",
                    file.provenance(self.name, record),
                    None if speed is None else speed * 1e9,
                    _role(roles.get(a_device), roles.get(b_device)),
                )
        yield from tally.issues()


def _rows(document: dict[str, JsonValue], key: str, tally: Tally) -> list[JsonValue]:
    rows = document.get(key)
    if isinstance(rows, list):
        return rows
    tally.add(
        "missing-list", pointer(key), f"{key} is {str(rows)[:40]!r}, expected a list of objects; nothing of it read"
    )
    return []


def _role(a_role: str | None, b_role: str | None) -> str | None:
    if a_role is None or b_role is None:
        return None
    return "leaf-host" if "host" in (a_role, b_role) else "leaf-spine"


ADAPTER = TidyTopology()
