"""Makes an attempt's objects on its cluster, or takes up those that are there; and removes them.

The Secret with the run's Ray token comes first and goes last: KubeRay stops a driver with that
token, and keeps a RayJob for ever whose token it cannot read. Each has a name that follows from the
attempt, so whatever a process that was killed has made is met by the next one.
"""

import base64
import secrets
import time
from http import HTTPStatus

from factory.control.kube.api import Api, Json
from factory.control.kube.fields import is_leaving, label, mapping
from factory.control.kube.looking import Lookout
from factory.control.kube.names import ATTEMPT, OWNER, ROOT_RUN, STEP
from factory.control.kube.pods import Manifest
from factory.control.kube.rayjob import TOKEN_KEY, secret
from factory.control.kube.submission import Submission
from factory.errors import ClusterError, ClusterOutOfReach, ClusterRefused, RunFailed

LOOK_AGAIN_SECONDS = 1.0
BEYOND_GRACE_SECONDS = 120.0
"""Beyond what its pods get to end: for KubeRay, the garbage collector and the kubelets."""

_UNCOUNTED = "status unknown for quota"
"""How the API server refuses everything while the controller has not yet counted a new quota."""

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
        if (there := self._lookout.rayjob()) is not None:
            self._check_ours(there)  # before a Secret is made for what is another's
        token = self._token()
        found = self._created(self._jobs, manifest) or self._lookout.rayjob()
        if found is not None:
            self._check_ours(found)
        if found is None or is_leaving(found):  # it may be gone since it was in the way
            raise ClusterOutOfReach(f"RayJob {self._submission.name} is being deleted")
        self.token = token

    def find(self) -> None:
        """Take up the attempt's objects, if they are there, without making any.

        Raises:
            RunFailed: what has the name is not this attempt's.
            ClusterError: the cluster cannot be asked.
        """
        found = self._lookout.rayjob()
        if found is not None:
            self._check_ours(found)
            self.token = self._read_token() or ""

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

    def _created(self, path: str, manifest: Manifest) -> Json | None:
        """The new object; none where there is one of its name."""
        try:
            return self._api.create(path, manifest)
        except ClusterRefused as refused:
            if refused.status == HTTPStatus.CONFLICT:
                return None
            if _UNCOUNTED in str(refused):
                raise ClusterOutOfReach(str(refused)) from None
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

    def _token(self) -> str:
        """The token of the Secret that is there, of a new one if there is none."""
        token = secrets.token_urlsafe(32)
        if self._created(self._secrets, secret(self._submission, token)) is not None:
            return token
        if (there := self._read_token()) is None:
            raise ClusterOutOfReach(f"Secret {self._submission.secret_name} is being deleted")
        return there

    def _read_token(self) -> str | None:
        try:
            found = self._api.get(f"{self._secrets}/{self._submission.secret_name}")
        except ClusterRefused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        try:
            return base64.b64decode(str(mapping(found, "data").get(TOKEN_KEY) or "")).decode()
        except ValueError:
            name = self._submission.secret_name
            raise ClusterOutOfReach(f"Secret {name} is shown as something else") from None

    def _secret_left(self) -> list[str]:
        name = self._submission.secret_name
        return [f"Secret {name}"] if self._read_token() is not None else []

    def _delete(self) -> None:
        """The RayJob, with what belongs to it; then its Secret."""
        self._delete_one(f"{self._jobs}/{self._submission.name}")
        if self._lookout.rayjob() is None:
            self._delete_one(f"{self._secrets}/{self._submission.secret_name}")

    def _delete_one(self, path: str) -> None:
        try:
            self._api.delete(path, {"propagationPolicy": "Background"})
        except ClusterRefused as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
