"""Texts without what looks like a credential, and which names are those of credentials. Pure.

What is left out of a text ends where its value does: a quoted one at the closing quote, another at the next white
space, since passwords hold commas, ampersands and brackets, too.
"""

from __future__ import annotations

import re

LEFT_OUT = "(left out)"

_SECRET = (
    r"(?:pass(?:word|wd|phrase)?|secret|token|credential|authorization|cookie|signature|(?<![a-z0-9])sig(?![\w.-])|"
    r"(?<![a-z0-9])sas(?=[.=]|[\\\"' ]*[:=])|"
    r"(?:api|access|private|signing|account|shared)[._-]?key(?!provider))"
)
# Fields that name Secrets, one of their keys or a file, and hold none of it.
_NAME_ENDINGS = (
    *("Name", "Names", "Ref", "File", "Path", "Url", "Seconds", "PullSecrets"),
    *("passwordKey", "usernameKey", "tokenKey"),
)
_IS_NO_NAME = "".join(f"(?<!{ending})" for ending in _NAME_ENDINGS)
_SECRET_FIELD = re.compile(rf"{_SECRET}.*{_IS_NO_NAME}$", re.IGNORECASE | re.DOTALL)
# Of bounded length before a mark: a long run of characters costs no more than its length.
_NAME = rf"{_SECRET}[\w.-]{{0,60}}{_IS_NO_NAME}"

_IS_KEPT = rf"(?!{re.escape(LEFT_OUT)})"
# Quotes may be escaped, once or more often, or doubled within.
_QUOTED = (
    rf"""(?P<open>b?(?P<escape>\\*)(?P<quote>["'])){_IS_KEPT}"""
    r"""(?:(?P=quote){2}|(?!(?<!\\)(?P=escape)(?P=quote)).)+"""
)
# A list or a mapping of plain values.
_FLAT = r"\[[^\[\]{}\n]+\]|\{[^\[\]{}\n]+\}"
_IS_PLAIN = rf"""{_IS_KEPT}(?!b?\\*["']|[\[{{](?:[\[{{\\"'\s]|$)|[,;&)\]}}]+(?:\s|$))"""
# What ends the quoted text around it is none of it.
_TO_SPACE = rf"""{_IS_PLAIN}(?:(?!\\*["'](?:[,}}\])\s]|$))\S)+"""
_TO_COMMA = rf"{_IS_PLAIN}[^\s,}}\]]+"

_TEXTS = (
    # PEM blocks of keys.
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), LEFT_OUT),
    # JSON Web Tokens, whoever made them.
    (re.compile(r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"), LEFT_OUT),
    # Names of AWS's access keys.
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b"), LEFT_OUT),
    # Of a header, whatever its scheme is.
    (
        re.compile(
            r"""(authorization\\?["']?[ \t]*[=:][ \t]*\\?["']?\w+)[ \t]+[\w.~+/=-]+""",
            re.IGNORECASE,
        ),
        rf"\1 {LEFT_OUT}",
    ),
    # Of a header that is not named; a plain word, as in "basic authentication", is no credential.
    (re.compile(r"\b((?i:Bearer|Basic))[ \t]+(?![a-z]+\b)[\w.~+/=-]{8,}"), rf"\1 {LEFT_OUT}"),
    # Of another header, to its end.
    (re.compile(rf"""(cookie[ \t]*:[ \t]*){_IS_KEPT}[^\s"'][^\n"']*""", re.IGNORECASE), rf"\1{LEFT_OUT}"),
    # User and password of an address; what follows the colon may be a port, and the password may hold any mark.
    (
        re.compile(r"""(://)[^\s/:"<>]{0,200}:(?!\d{1,5}(?:[/?#,;"'\s]|$))[^\s"<>]{0,2000}@(?!sha\d{3}:)"""),
        rf"\1{LEFT_OUT}@",
    ),
    # A user or a token alone; what stands before a digest is an image.
    (re.compile(r"""(://)[^\s/?#:"<>]{1,2000}@(?!sha\d{3}:)"""), rf"\1{LEFT_OUT}@"),
    # Parameters of an address.
    (re.compile(rf"""([?&][\w.-]{{0,60}}{_NAME}=){_IS_KEPT}[^\s&"'<>]+""", re.IGNORECASE), rf"\1{LEFT_OUT}"),
    # "name": "value".
    (
        re.compile(rf"""(?P<name>{_NAME}\\*["'][ \t]*[=:][ \t]*)(?:{_QUOTED}|{_FLAT}|{_TO_COMMA})""", re.IGNORECASE),
        None,
    ),
    # name=value, name: "value".
    (re.compile(rf"(?P<name>{_NAME}[ \t]*[=:][ \t]*)(?:{_QUOTED}|{_FLAT}|{_TO_SPACE})", re.IGNORECASE), None),
    # --name value, "--name", "value", or each in a line of YAML; what begins with a hyphen is the next flag.
    (
        re.compile(
            rf"""(?P<name>(?<![\w-])--?[\w.-]{{0,60}}{_NAME}"""
            r"""(?:[ \t]+|\\*["'][ \t]*,?[ \t]*(?=\\*["'])|[ \t]*\n[ \t]*-[ \t]+))(?!\\*["']?-)"""
            rf"(?:{_QUOTED}|{_TO_SPACE})",
            re.IGNORECASE,
        ),
        None,
    ),
)


def redacted_text(text: str) -> str:
    """A text without what looks like a credential."""
    for pattern, instead in _TEXTS:
        text = pattern.sub(_without_value if instead is None else instead, text)
    return text


def is_secret(name: str) -> bool:
    """Whether what a field or a flag of this name holds is a credential, not only the name or place of one."""
    return _SECRET_FIELD.search(name) is not None


def _without_value(found: re.Match[str]) -> str:
    return f"{found['name']}{found['open'] or ''}{LEFT_OUT}"
