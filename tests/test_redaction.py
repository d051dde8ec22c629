"""No secret that was put into a bundle comes out of it: not in an excerpt, not in an event, not in a read issue."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeline import adapters
from causeline.adapters.redaction import MARK, redacted

SECRET = "Zx9Qk7Lm2Rw8Tt4"

LINES = (
    f"username admin privilege 15 role network-admin secret sha512 $6$abc${SECRET}",
    f"username admin secret 5 {SECRET}",
    f"username admin password 7 {SECRET}",
    f"enable secret 9 {SECRET}",
    f"enable password {SECRET}",
    f"snmp-server community {SECRET} ro",
    f"snmp-server community 7 {SECRET} group network-operator",
    f"snmp-server user nms network-operator v3 auth sha {SECRET} priv aes {SECRET}",
    f"neighbor 10.255.3.12 password 7 {SECRET}",
    f"neighbor 10.255.3.12 password {SECRET}",
    f"tacacs-server host 10.0.0.5 key 7 {SECRET}",
    f"radius-server key {SECRET}",
    f"ntp authentication-key 1 md5 7 {SECRET}",
    f"ip ospf authentication-key 7 {SECRET}",
    f"key 8a {SECRET}",
    f"Authorization: Bearer {SECRET}",
    f"authorization: Basic {SECRET}==",
    f'{{"headers": {{"Authorization": "Token {SECRET}"}}}}',
    f'{{"password": "{SECRET}", "user": "admin"}}',
    f'{{"api_key":"{SECRET}"}}',
    f"PASSWORD={SECRET}",
    f"export WANDB_API_KEY={SECRET}",
    f"AWS_SECRET_ACCESS_KEY={SECRET}",
    f"db_password: {SECRET}",
    f"curl -u x --token {SECRET} https://nms",
    f"https://collector:{SECRET}@nms.example/api",
    f"https://nms.example/api?access_token={SECRET}&x=1",
    f"community: {SECRET}",
    f"snmp_community = '{SECRET}'",
    f"crypt $1$salt${SECRET} and $9${SECRET}",
    f"token eyJhbGciOiJIUzI1NiJ9.{SECRET}abc.{SECRET}",
    f"ghp_{SECRET}{SECRET} hf_{SECRET} AKIAABCDEFGHIJKLMNOP",
    f"Set-Cookie: session={SECRET}; Path=/",
    f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAB{SECRET} admin@x",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    f"b3BlbnNzaC1rZXktdjEAAAAABG5v{SECRET}",
    f"{SECRET}bmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz",
    "-----END OPENSSH PRIVATE KEY-----",
)
HARMLESS = (
    '{"ts": "2026-11-17T20:15:02.310Z", "job": "run-0412", "step": 81233, "step_time_s": 2.31, "tokens": 4194304}',
    "%BGP-5-ADJCHANGE: peer 10.255.3.12 (VRF default AS 65100) old state Established event RecvNotify new state Idle",
    "     rx_prio3_pause_duration: 81230",
    '{"intfQueueCounters": {"Ethernet12": {"queueCounters": {"3": "81230"}}}}',
    "firmware-version: 28.43.2026 (MT_0000000838)",
    "%SYS-5-CONFIG_SESSION_COMMIT_SUCCESS: User netops committed configuration session drain-spine-03 successfully",
    "/sys/class/infiniband/mlx5_3/ports/1/hw_counters/np_cnp_sent:88123",
)


@pytest.fixture
def seeded(tmp_path: Path) -> Path:
    """A bundle whose files hold a secret in every way there is."""
    folder = tmp_path / "seeded"
    (folder / "switches/leaf-07").mkdir(parents=True)
    (folder / "switches/leaf-07/running-config.txt").write_text("\n".join(LINES) + "\n")
    stamped = "2026-11-17T20:31:00+00:00 leaf-07 ConfigAgent: %SYS-5-CONFIG_I: Configured by netops: "
    (folder / "switches/leaf-07/syslog.log").write_text("".join(stamped + line + "\n" for line in LINES[:34]))
    for number, line in enumerate(LINES[:34]):
        (folder / f"first-line-{number}.txt").write_text(line + "\n")
    return folder


def test_no_seeded_secret_comes_out(seeded: Path) -> None:
    reading = adapters.read(seeded)
    assert len(reading.facts) == 34
    for fact in reading.facts:
        assert SECRET not in repr(fact)
        assert SECRET not in reading.excerpt(fact.provenance.source, fact.provenance.record)
    for issue in reading.issues:
        assert SECRET[:8] not in issue.message, issue
    source = "switches/leaf-07/running-config.txt"
    for number in range(1, len(LINES) + 1):
        for record in (f"line {number}", f"lines {max(1, number - 1)}-{number}"):
            assert SECRET[:8] not in reading.excerpt(source, record), record


@pytest.mark.parametrize("line", LINES[:34])
def test_line_keeps_what_is_not_secret(line: str) -> None:
    shown = redacted(line)
    assert SECRET not in shown and MARK in shown
    assert shown.split()[0].startswith(line.split()[0][:3]) or shown.startswith(MARK)


@pytest.mark.parametrize("line", HARMLESS)
def test_telemetry_is_shown_as_it_is(line: str) -> None:
    assert redacted(line) == line


@given(st.text(alphabet="abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789#!%+-_.", min_size=8, max_size=40))
def test_any_password_in_a_configuration_line_is_taken_out(secret: str) -> None:
    for line in (f"username x password 7 {secret}", f"snmp-server community {secret} ro", f'"password": "{secret}"'):
        kept = line.replace(secret, "")
        assert secret not in redacted(line) or secret in kept or secret in MARK


@given(st.text())
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)
