"""Makes an attempt's objects on its cluster, or takes up those that are there; and removes them.

The RayJob comes first and the Secret with its Ray token belongs to it, so that whatever removes the
one removes the other. The kubelet waits for a Secret that is not there yet. Between the two this
process may be killed: a RayJob without its Secret has never begun, and is made anew.
"""

import base64
import secrets
import time
from http import HTTPStatus

from factory.control.kube.api import Api, Json
from factory.control.kube.fields import is_leaving, label, mapping, name, text
from factory.control.kube.looking import Lookout
from factory.control.kube.names import ATTEMPT, OWNER, ROOT_RUN, STEP
from factory.control.kube.pods import Manifest
from factory.control.kube.rayjob import TOKEN_KEY, secret
from factory.control.kube.submission import Submission
from factory.errors import ClusterError, ClusterOutOfReach, ClusterRefused, RunFailed

LOOK_AGAIN_SECONDS = 1.0
BEYOND_GRACE_SECONDS = 120.0
"""Beyond what its pods get to end: for KubeRay, the garbage collector and the kubelets."""

_OURS = (OWNER, ROOT_RUN, STEP, ATTEMPT)


class Objects:
    """One attempt's objects on one cluster."""

    def __init__(self, api: Api, submission: Submission, lookout: Lookout) -> None:
        self._api = api
        self._submission = submission
        self._lookout = lookout
        self.token = ""
        """Of the run's own Ray, once its objects are there."""

    @property
    def _jobs(self) -> str:
        return f"/apis/ray.io/v1/namespaces/{self._submission.cluster.namespace}/rayjobs"

    @property
    def _secrets(self) -> str:
        return f"/api/v1/namespaces/{self._submission.cluster.namespace}/secrets"

    def make(self, manifest: Manifest) -> None:
        """Have the attempt's objects on the cluster: new ones, or those that are there.

        Raises:
            RunFailed: what has the name is not this attempt's.
            ClusterOutOfReach: ask again; what was made meanwhile is taken up then.
            ClusterError: the cluster refuses it.
        """
        made = self._created(manifest)
        found = made or self._api.get(f"{self._jobs}/{self._submission.name}")
        self._check_ours(found)
        if is_leaving(found):
            raise ClusterOutOfReach(f"RayJob {name(found)} is being deleted")
        self._have_secret(found, new=made is not None)

    def find(self) -> bool:
        """Take up the attempt's objects without making any; whether the RayJob is there.

        Raises:
            RunFailed: what has the name is not this attempt's.
            ClusterError: the cluster cannot be asked.
        """
        found = self._lookout.rayjob()
        if found is None:
            return False
        self._check_ours(found)
        self.token = self._read_token() or ""
        return True

    def remove(self, within_seconds: float) -> None:
        """Delete everything of the attempt, and return when it is proved to be gone.

        Raises:
            RunFailed: it is still there; the message names what.
        """
        deadline = time.monotonic() + within_seconds
        problem: ClusterError | None = None
        left = [f"RayJob {self._submission.name}"]
        while True:
            try:
                self._delete()
                left, problem = [*self._lookout.left(), *self._secret_left()], None
                if not left:
                    return
            except ClusterError as error:
                problem = error
            if time.monotonic() > deadline:
                break
            time.sleep(LOOK_AGAIN_SECONDS)
        raise RunFailed(
            f"The run was stopped, but on cluster {self._submission.cluster.name} this is left: "
            f"{', '.join(left)}{f' ({problem})' if problem else ''}. `factory orphans --delete` "
            "removes it; until then it may hold its place."
        )

    def _created(self, manifest: Manifest) -> Json | None:
        try:
            return self._api.create(self._jobs, manifest)
        except ClusterRefused as refused:
            if refused.status == HTTPStatus.CONFLICT:
                return None
            raise

    def _check_ours(self, found: Json) -> None:
        wanted = self._submission.labels
        other = {key: label(found, key) for key in _OURS if label(found, key) != wanted[key]}
        if other:
            said = ", ".join(f"{key}={value or '(none)'}" for key, value in other.items())
            raise RunFailed(
                f"Cluster {self._submission.cluster.name} has a RayJob {self._submission.name} "
                f"that is not this attempt's ({said}). It is left alone; see whose it is."
            )

    def _have_secret(self, found: Json, *, new: bool) -> None:
        there = None if new else self._read_token()
        if there is None and not new and not text(found, "status", "jobStatus"):
            self._delete()  # it has never begun; its pods would be failing for want of the Secret
            raise ClusterOutOfReach(f"RayJob {name(found)} has no token and is made anew")
        self.token = there or self._create_token(text(found, "metadata", "uid"))

    def _create_token(self, uid: str) -> str:
        token = secrets.token_urlsafe(32)
        manifest = secret(self._submission, token)
        owner = {
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "name": self._submission.name,
            "uid": uid,
        }
        manifest["metadata"]["ownerReferences"] = [owner]
        try:
            self._api.create(self._secrets, manifest)
        except ClusterRefused as refused:
            if refused.status != HTTPStatus.CONFLICT:
                raise
            return self._read_token() or token
        return token

    def _read_token(self) -> str | None:
        try:
            found = self._api.get(f"{self._secrets}/{self._submission.secret_name}")
        except ClusterRefused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return base64.b64decode(str(mapping(found, "data").get(TOKEN_KEY) or "")).decode()

    def _secret_left(self) -> list[str]:
        name = self._submission.secret_name
        return [f"Secret {name}"] if self._read_token() is not None else []

    def _delete(self) -> None:
        """The RayJob; what belongs to it goes with it."""
        body = {"propagationPolicy": "Background"}
        try:
            self._api.delete(f"{self._jobs}/{self._submission.name}", body)
        except ClusterRefused as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
