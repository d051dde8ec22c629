"""Members of a small bundle, and the archives they are put into."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

from causeline.engine.facts import Fact, Reading, ReadIssue

CASES = Path(__file__).parents[1] / "fixtures" / "adapters"


MEMBERS = {
    "incident.yaml": "id: INC-1\nfabric: lab\njob: run-0412\nwindow: [2026-11-17T20:15:00Z, 2026-11-17T20:45:00Z]\n",
    "switches/leaf-07/show_priority-flow-control_counters_20261117T203000Z.json": (
        CASES / "eos-pfc-counters/normal/pfc.json"
    ).read_text(),
    "switches/leaf-07/syslog.log": (CASES / "switch-syslog/normal/syslog.log").read_text(),
    "switches/leaf-15/syslog": "Nov 17 20:31:00 leaf-15 Ebra: %LINEPROTO-5-UPDOWN: "
    "Line protocol on Interface Ethernet4, changed state to down\n",
    "jobs/scontrol_show_job.txt": (CASES / "slurm-job/normal/scontrol.txt").read_text(),
}


GNMIC = (CASES / "gnmic-events/normal/gnmic.jsonl").read_bytes()


LLDP = b'{"lldpNeighbors": [{"port": "Ethernet1", "neighborDevice": "s", "neighborPort": "Ethernet2"}]}'


HOST = {
    "gpu-worker-042/ethtool_-S/ens11f0np0_20261117T203000Z.txt": (
        CASES / "mlx5-ethtool-statistics/normal/ethtool_S.txt"
    ).read_text(),
    "gpu-worker-042/ethtool_-i/ens11f0np0.txt": (CASES / "ethtool-driver/normal/ethtool_i.txt").read_text(),
    "gpu-worker-042/rdma/mlx5_3_20261117T203000Z.txt": (CASES / "rdma-hw-counters/normal/hw.txt").read_text(),
    "gpu-worker-042/ibdev2netdev.txt": (CASES / "ibdev2netdev/normal/ibdev2netdev.txt").read_text(),
}


def tar_of(members: dict[str, bytes], prefix: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(prefix + name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def zip_of(members: dict[str, bytes], prefix: str = "", compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(prefix + name, content)
    return stream.getvalue()


def all_members() -> dict[str, bytes]:
    host = gzip.compress(tar_of({name: text.encode() for name, text in HOST.items()}), mtime=0)
    gnmic = gzip.compress(GNMIC, mtime=0)
    plain = {name: text.encode() for name, text in MEMBERS.items()}
    return {**plain, "hosts/gpu-worker-042.tar.gz": host, "switches/leaf-07/gnmic.jsonl.gz": gnmic}


def write_folder(folder: Path, members: dict[str, bytes]) -> Path:
    for name, content in members.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def issues_of(reading: Reading, source: str) -> list[ReadIssue]:
    return [issue for issue in reading.issues if issue.source == source]


def facts_without(reading: Reading, source: str) -> list[Fact]:
    return [fact for fact in reading.facts if fact.provenance.source != source]
