"""What looks like a secret: a text that is one, or a variable whose name says that it holds one."""

import re

LOOKS_SECRET = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]{8,}"  # a JSON web token, as Kubernetes issues
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|://[^/\s@]*@"  # an address with a user
    r"|\bsha256~[\w-]{8,}"  # a token of OpenShift
    r"|\bhf_[A-Za-z0-9]{16,}"
    r"|\bgh[oprsu]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}"
    r"|\bnvapi-[\w-]{16,}"
)

_NAME = re.compile(
    r"(.*_)?[A-Z]*(PASSWORD|PASSWD|PASSPHRASE)"
    r"|(.*_)?(PASS|PWD|SECRET|TOKEN|APIKEY|CREDENTIAL)"
    r"|(.*_)?(ACCESS|ACCOUNT|API|APP|AUTH|ENCRYPTION|MASTER|PRIVATE|SECRET|SIGNING|SSH)_KEY"
)
_SWITCHES = frozenset({"", "0", "1", "false", "no", "off", "on", "true", "yes"})
_OF_TEXTS = re.compile(r"(.*_)?(BOS|CLS|EOS|MASK|PAD|SEP|UNK)_TOKEN")
"""What tokenizers call their marks."""

_NO_SECRETS = ("PWD", "OLD_PWD")
"""Of a shell: where it is."""


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable is one for a secret, by its name; not if it only switches something."""
    said = name.upper()
    if said in _NO_SECRETS or _OF_TEXTS.fullmatch(said) or value.lower() in _SWITCHES:
        return False
    return _NAME.fullmatch(said) is not None
