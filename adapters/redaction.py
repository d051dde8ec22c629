"""Takes secrets out of excerpts before they are stored or shown: what looks like one becomes `[redacted]`.

Rather one value too many than one too few; the record itself stays where it was and can be looked up by those who may.
"""

from __future__ import annotations

import re

MARK = "[redacted]"

# Each pattern has the group `keep` (left as it is) in front of the secret.
_KEEPING = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # EOS and NX-OS: `secret sha512 $6$...`, `enable secret 5 ...`, `password 7 0822455D0A16`, `key 8a ...`
        r"(?P<keep>\b(?:secret|password|key|md5|auth|priv)\s+(?:sha512|sha256|md5|aes(?:\s*\d+)?|des|encrypted|level\s+\d+|[05789]a?)\s+)"
        r"(?:sha512\s+)?(?P<secret>[^\s\"'<>,]+)",
        r"(?P<keep>\bsnmp-server\s+community\s+(?:[078]a?\s+)?)(?P<secret>\S+)",
        r"(?P<keep>\b(?:snmp[-_ ]?)?community(?:[-_ ]?string)?[\"']?\s*[:=]\s*[\"']?)(?P<secret>[^\s\"',;}]+)",
        r"(?P<keep>\b(?:tacacs|radius)-server\b.*?\bkey\s+(?:[0-9]a?\s+)?)(?P<secret>\S+)",
        r"(?P<keep>\bauthentication[- ]key\s+(?:\d+\s+)?(?:md5|sha1|sha256|simple)?\s*(?:[0-9]a?\s+)?)(?P<secret>\S+)",
        r"(?P<keep>\bneighbor\s+\S+\s+password\s+(?:[0-9]a?\s+)?)(?P<secret>\S+)",
        r"(?P<keep>\bsnmp-server\s+user\b.*?\b(?:auth|priv)\s+\w+\s+)(?P<secret>\S+)",
        r"(?P<keep>\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token|digest)?\s*)(?P<secret>[^\s\"',;}][^\"',;}]*)",
        r"(?P<keep>\b(?:bearer|basic)\s+)(?P<secret>[A-Za-z0-9._~+/=-]{12,})",
        # key = value, key: value, "key": "value", --key value, key=value in URLs and environments
        r"(?P<keep>(?:^|[^a-z])(?:[a-z0-9]+[-_.])*(?:password|passwd|passphrase|pwd|secret|token|api[-_]?key|apikey|access[-_]?key|"
        r"private[-_]?key|secret[-_]?key|auth[-_]?key|credentials?|client[-_]?secret|set-cookie|cookie)(?:[-_][a-z0-9]+)*[\"']?"
        r"\s*(?:[:=]|=>)\s*[\"']?)(?P<secret>[^\s\"',;}&]+)",
        r"(?P<keep>(?:^|\s)--?(?:password|passwd|secret|token|api[-_]?key)\s+)(?P<secret>\S+)",
        r"(?P<keep>\b(?:password|passwd|passphrase|secret)\s+(?:is\s+)?)(?P<secret>(?!\[redacted\])[^\s\"',;:=]{4,})",
        r"(?P<keep>\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)(?P<secret>[^\s/@]+)(?=@)",
    )
)
_WHOLE = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|$)",
        r"\$(?:1|2[aby]?|5|6|7|8|9|y|sha512)\$[^\s\"',;}]+",  # crypt(5) hashes; Cisco type 8 and 9; Juniper $9$
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",  # JSON web tokens
        r"\b(?:ghp|gho|ghs|ghu|github_pat|glpat|xox[abprs]|hf|sk|pk_live|sk_live|dckr_pat|nvapi)[-_][A-Za-z0-9_-]{10,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bssh-(?:rsa|ed25519|dss) [A-Za-z0-9+/=]{20,}",
    )
)


def redacted(text: str) -> str:
    """The text with every secret it seems to hold replaced by a mark.

    >>> redacted("snmp-server community fabric-ro ro")
    'snmp-server community [redacted] ro'
    """
    for pattern in _WHOLE:
        text = pattern.sub(MARK, text)
    for pattern in _KEEPING:
        text = pattern.sub(_kept, text)
    return text


def _kept(match: re.Match[str]) -> str:
    return match["keep"] + MARK if match["secret"] not in (MARK, MARK.strip("[]")) else match[0]
