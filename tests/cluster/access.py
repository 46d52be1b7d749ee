"""The factory in a cluster: a service account, what it may do, and tokens good and bad."""

import time
from dataclasses import dataclass
from typing import Any

from factory.control.clusters import chart
from tests.cluster.api import Api
from tests.cluster.certificates import signed_token
from tests.cluster.control_plane import ControlPlane

ACCOUNT = "factory"
_RBAC = "rbac.authorization.k8s.io"
RULES = [rule for rules in chart.rules().values() for rule in rules]
"""What runs take in their own namespace, as the chart grants it."""


@dataclass(frozen=True)
class Account:
    """A service account of one namespace."""

    plane: ControlPlane
    namespace: str
    uid: str

    @property
    def subject(self) -> str:
        """Its name as a user."""
        return f"system:serviceaccount:{self.namespace}:{ACCOUNT}"

    def token(self, seconds: int = 3600) -> str:
        """A token that the API server issues.

        Raises:
            Refused: there is no such account any more.
        """
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{ACCOUNT}/token"
        request = {"spec": {"expirationSeconds": seconds}}
        return self.plane.admin.create(path, request)["status"]["token"]

    def signed_token(self, seconds_left: int) -> str:
        """A token signed with the server's key, that ends so soon or has ended already."""
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.plane.issuer,
            "aud": [self.plane.issuer],
            "sub": self.subject,
            "exp": now + seconds_left,
            "iat": now - 3600,
            "nbf": now - 3600,
            "kubernetes.io": {
                "namespace": self.namespace,
                "serviceaccount": {"name": ACCOUNT, "uid": self.uid},
            },
        }
        return signed_token(self.plane.signing_key, claims)

    def api(self, token: str | None = None) -> Api:
        """The API server as this account sees it."""
        return Api(self.plane.address, self.plane.ca, self.token() if token is None else token)


def factory_account(plane: ControlPlane, namespace: str) -> Account:
    """Make the factory's account in a namespace, with the rights to run there and no others.

    Raises:
        Refused: there is no such namespace, or it has the account already.
    """
    core = f"/api/v1/namespaces/{namespace}"
    rights = f"/apis/{_RBAC}/v1/namespaces/{namespace}"
    account = plane.admin.create(f"{core}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
    role = {"metadata": {"name": ACCOUNT}, "rules": RULES}
    plane.admin.create(f"{rights}/roles", role)
    binding = {
        "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }
    plane.admin.create(f"{rights}/rolebindings", binding)
    return Account(plane, namespace, account["metadata"]["uid"])
