"""Small simulated runs and what is read of them, made once a session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pytest

from causeline.fixtures.model.conditions import Conditions, Design
from causeline.fixtures.model.dcqcn import QueueProfile
from causeline.fixtures.model.fabric import Fabric
from causeline.fixtures.model.fault import Record
from causeline.fixtures.model.run import Setup, run
from causeline.fixtures.model.telemetry import Telemetry
from causeline.fixtures.model.traffic import Background, Collective, Job, Pattern
from causeline.fixtures.readings import Collection, Reading, readings

START = datetime(2026, 11, 17, 20, 15, tzinfo=UTC)


ONSET, SECONDS = 300.0, 600.0


FABRIC = Fabric("small", units=2, hosts_per_unit=4, rails=2, spines=2, uplink_gbps=400)


DESIGN = Design(
    np.arange(FABRIC.leaves) * 7919 + 3,
    np.arange(FABRIC.all_spines) * 31 + 11,
    QueueProfile.for_speed(400),
    QueueProfile.for_speed(400),
)


JOB = Job("run-1", "acme", (0, 4, 1, 5, 2, 6), (Collective(Pattern.RING, 40e9, 4),), 3.0, model="llm-7b")


READS = Background((3,), (7,), 0, 40.0, 200.0, SECONDS)


Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Lossy:
    """One link with bad light, one that loses silently, one that discards, and a clock that is ahead."""

    onset: float = ONSET

    def changes(self, until: float) -> tuple[float, ...]:
        return (self.onset,)

    def apply(self, conditions: Conditions, fabric: Fabric, at: float) -> None:
        conditions.light_lost_db[fabric.leaf_up(0, 0)] = 4.6
        conditions.silent_loss[fabric.leaf_up(1, 1)] = 0.01
        conditions.oversize_loss[fabric.leaf_up(1, 0)] = 0.01
        conditions.drain[fabric.nic(0, 1)] = 0.5
        conditions.clock_offset[1] = 7.0

    def records(self, fabric: Fabric, until: float) -> tuple[Record, ...]:
        return ()


@dataclass(frozen=True)
class Overflow(Lossy):
    """Queues do not mark, and may not pause (`pauses` False) or pause too late."""

    pauses: bool = False

    def apply(self, conditions: Conditions, fabric: Fabric, at: float) -> None:
        conditions.sends_pause[:] = self.pauses
        conditions.profiles[:] = [replace(one, pmax=0.0, headroom=1e4) for one in conditions.profiles]


@dataclass(frozen=True)
class Cut:
    """A cable that goes down."""

    onset: float = ONSET

    def changes(self, until: float) -> tuple[float, ...]:
        return (self.onset,)

    def apply(self, conditions: Conditions, fabric: Fabric, at: float) -> None:
        conditions.take_down(fabric, fabric.leaf_up(0, 0))

    def records(self, fabric: Fabric, until: float) -> tuple[Record, ...]:
        device, port = fabric.sending_port[fabric.leaf_up(0, 0)]
        return (Record(self.onset, "interface", device, port, "link down", (("state", "down"),)),)


def played(*faults: Lossy | Cut, jobs: tuple[Job, ...] = (JOB,)) -> Telemetry:
    return run(Setup(FABRIC, DESIGN, jobs, (READS,), faults, SECONDS, 10.0, 1))


@pytest.fixture(scope="session")
def lossy() -> Telemetry:
    return played(Lossy())


@pytest.fixture(scope="session")
def cut() -> Telemetry:
    return played(Cut())


@pytest.fixture(scope="session")
def lossy_readings(lossy: Telemetry) -> tuple[Reading, ...]:
    return readings(lossy, Collection(seed=5, flow_records_of="run-1", probe_pairs=6))


@pytest.fixture(scope="session")
def cut_readings(cut: Telemetry) -> tuple[Reading, ...]:
    return readings(cut, Collection(seed=5))


def by_place(found: tuple[Reading, ...]) -> dict[Key, Reading]:
    table = {(one.device, one.port, one.metric, one.qualifier): one for one in found}
    assert len(table) == len(found)
    return table


def grown(table: dict[Key, Reading], device: str, port: str, metric: str, qualifier: str = "") -> float:
    values = table[(device, port, metric, qualifier)].values
    return float(values[-1] - values[0])
