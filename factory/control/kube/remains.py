"""Finds what ended runs left on one cluster, removes it, and proves that it is gone.

The factory may not list Secrets, so a Secret is looked for by the name that a RayJob or RayCluster
has for it, and by that of a RayJob on record that is not there: whoever is killed before it makes
one leaves a Secret alone, and so does who deletes one by hand. A Secret goes after its RayJob,
never before it: KubeRay stops a driver with the token, and keeps a RayJob for ever whose token it
cannot read.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from factory.control.kube.api import Api
from factory.control.kube.fields import Object, name, objects, text
from factory.control.kube.names import MANAGED_BY, PREFIX, secret_name
from factory.control.kube.orphans import Findings, Judge, Orphan, secret_of
from factory.errors import ClusterError, ClusterRefused

LOOK_AGAIN_SECONDS = 0.5
REMOVED = "removed"

_PASSING = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
"""It is gone, or another of its name is there: somebody else was faster."""


@dataclass(frozen=True)
class Removal:
    """What came of one orphan."""

    orphan: Orphan
    gone: bool
    words: str


class Remains:
    """What is left of runs in the Kubernetes namespace of one cluster."""

    def __init__(self, api: Api, namespace: str, judge: Judge) -> None:
        self._api = api
        self._judge = judge
        ray = f"/apis/ray.io/v1/namespaces/{namespace}"
        self._paths = {
            "RayJob": f"{ray}/rayjobs",
            "RayCluster": f"{ray}/rayclusters",
            "Secret": f"/api/v1/namespaces/{namespace}/secrets",
        }

    def find(self, begun: Collection[str] = ()) -> Findings:
        """The orphans there; `begun` are RayJobs on record, of which a Secret may be left.

        Raises:
            ClusterError: the cluster cannot be asked.
        """
        jobs = self._listed("RayJob")
        of_jobs = {text(job, "metadata", "uid") for job in jobs}
        alone = [one for one in self._listed("RayCluster") if not _owners(one) & of_jobs]
        there = {name(job) for job in jobs}
        named = (self._named(secret_name(job)) for job in begun if job not in there)
        secrets = [one for one in named if one is not None]
        found = self._judge.among([*jobs, *alone, *secrets])
        going = {orphan.uid for orphan in found.orphans}
        staying = {
            secret_of(one) for one in (*jobs, *alone) if text(one, "metadata", "uid") not in going
        }
        theirs = (self._secret(one) for one in found.orphans if one.secret not in staying)
        return found.and_those(one for one in theirs if one is not None and one.uid not in going)

    def remove(self, orphans: Iterable[Orphan], within_seconds: float) -> list[Removal]:
        """Remove them, and say of each what came of it."""
        deadline = time.monotonic() + within_seconds
        asked = list(orphans)
        first = [one for one in asked if one.kind != "Secret"]
        removed = self._rid_of(first, deadline)
        held = {one.orphan.secret for one in removed if not one.gone}
        secrets = [one for one in asked if one.kind == "Secret"]
        free = [one for one in secrets if one.name not in held]
        kept = [
            Removal(one, gone=False, words="stays for as long as what refers to it")
            for one in secrets
            if one.name in held
        ]
        return [*removed, *self._rid_of(free, deadline), *kept]

    def _rid_of(self, orphans: Sequence[Orphan], deadline: float) -> list[Removal]:
        told = [self._tell(one, deadline) for one in orphans]
        waiting = [one for one, removal in zip(orphans, told, strict=True) if removal is None]
        gone = self._wait(waiting, deadline)
        return [removal or (gone[one.uid]) for one, removal in zip(orphans, told, strict=True)]

    def _tell(self, orphan: Orphan, deadline: float) -> Removal | None:
        """Tell it to go; what to say of it where it is not told to."""
        if orphan.leaving:
            return None
        if time.monotonic() > deadline:
            return Removal(orphan, gone=False, words="left for the next sweep: no more time")
        if not self._judge.still(orphan):
            return Removal(orphan, gone=False, words="stays: a run goes on with it")
        # Foreground: it is there until everything that belongs to it is gone.
        body = {"propagationPolicy": "Foreground", "preconditions": {"uid": orphan.uid}}
        try:
            self._api.delete(self._path(orphan), body)
        except ClusterError as error:
            if not (isinstance(error, ClusterRefused) and error.status in _PASSING):
                return Removal(orphan, gone=False, words=f"could not be removed: {error}")
        return None

    def _wait(self, orphans: Collection[Orphan], deadline: float) -> dict[str, Removal]:
        """Look at them until they are gone, or there is no more time."""
        done: dict[str, Removal] = {}
        while True:
            for one in orphans:
                if one.uid not in done and (removal := self._look(one)) is not None:
                    done[one.uid] = removal
            if len(done) == len(orphans):
                return done
            if time.monotonic() > deadline:
                words = (
                    "has been told to go, and is still there: its pods are stopping, or KubeRay's "
                    "operator does not let go of it"
                )
                left = {one.uid: Removal(one, gone=False, words=words) for one in orphans}
                return left | done
            time.sleep(LOOK_AGAIN_SECONDS)

    def _look(self, orphan: Orphan) -> Removal | None:
        """What came of it; none while it is there."""
        try:
            found = self._api.get(self._path(orphan))
        except ClusterError as error:
            if isinstance(error, ClusterRefused) and error.status == HTTPStatus.NOT_FOUND:
                return Removal(orphan, gone=True, words=REMOVED)
            return Removal(orphan, gone=False, words=f"nobody can say whether it is gone: {error}")
        if text(found, "metadata", "uid") != orphan.uid:
            return Removal(orphan, gone=True, words="removed; there is another of its name")
        return None

    def _listed(self, kind: str) -> list[Object]:
        items = self._api.items(self._paths[kind], labelSelector=f"{MANAGED_BY}={PREFIX}")
        return [{**one, "kind": kind} for one in items]

    def _secret(self, orphan: Orphan) -> Orphan | None:
        """The Secret that an orphan refers to, where it is of the same run."""
        found = self._named(orphan.secret) if orphan.secret else None
        return self._judge.going_with(found, orphan) if found is not None else None

    def _named(self, secret: str) -> Object | None:
        try:
            return {**self._api.get(f"{self._paths['Secret']}/{secret}"), "kind": "Secret"}
        except ClusterRefused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def _path(self, orphan: Orphan) -> str:
        return f"{self._paths[orphan.kind]}/{orphan.name}"


def _owners(one: Object) -> set[str]:
    return {text(owner, "uid") for owner in objects(one, "metadata", "ownerReferences")}
