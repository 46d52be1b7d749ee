"""Which objects on a cluster are orphans: their run is over, or nobody knows it.

Pure: objects as an API server has them, and what Dagster knows of their runs. Objects that another
Dagster asked for, and objects that do not say whose they are, are left alone and counted. How
orphans are found and removed is in `remains`, what Dagster knows in `factory.control.fates`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from factory.control.kube.fields import Object, is_leaving, label, moment, name, text
from factory.control.kube.names import MANAGED_BY, OWNER, PREFIX, ROOT_RUN, RUN

GRACE = timedelta(minutes=10)
"""How long whoever ran it has to remove it, who stops gracefully and proves that it is gone."""

UNKNOWN = "Dagster knows no such run"

type Left = Literal["alive", "young", "another's", "unclear"]


@dataclass(frozen=True)
class Fate:
    """What became of a run, and of those that went on with it."""

    words: str
    """Dagster's word for it, of the last of them."""

    ended: datetime | None
    """When the last of them ended; none while one goes on."""


type Known = Mapping[str, Fate]
"""By the run's id, as a label has it. A run that is not in it is unknown."""


@dataclass(frozen=True, kw_only=True)
class Orphan:
    """One object that nobody will remove any more."""

    kind: str
    name: str
    uid: str
    runs: frozenset[str]
    """Its run and that run's root, as its labels have them."""
    run: str
    why: str
    since: datetime
    leaving: bool = False
    """Whether it has been told to go already."""
    secret: str = ""
    """The Secret that it refers to, which has to stay for as long as it does."""


@dataclass(frozen=True)
class Findings:
    """The orphans among some objects, and what was left alone."""

    orphans: tuple[Orphan, ...] = ()
    left: Mapping[Left, int] = field(default_factory=dict[Left, int])

    def and_those(self, orphans: Iterable[Orphan]) -> "Findings":
        """The same, and what goes with them."""
        return replace(self, orphans=(*self.orphans, *orphans))

    @property
    def notes(self) -> list[str]:
        """What a person should know of what was left alone."""
        words: dict[Left, str] = {
            "young": "of runs that are over or unknown, for less than the grace time",
            "another's": "of another Dagster, or of nobody, left alone",
            "unclear": "left alone, because labels, uid or time do not say enough to judge",
        }
        return [
            f"{count:,} {'object' if count == 1 else 'objects'} {words[kind]}"
            for kind in words
            if (count := self.left.get(kind, 0))
        ]


@dataclass(frozen=True, kw_only=True)
class Judge:
    """Tells orphans from the rest, for one Dagster."""

    owner: str
    known: Callable[[Collection[str]], Known]
    begun: Callable[[str], Collection[str]] = lambda _: ()
    """By the name of a cluster: its RayJobs on record of which something may be left."""
    grace: timedelta = GRACE
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def among(self, objects: Iterable[Object]) -> Findings:
        """The orphans among objects that were listed before Dagster is asked of their runs."""
        listed = list(objects)
        runs = {run for one in listed if _is_ours(one, self.owner) for run in runs_of(one)}
        known: Known = self.known(runs) if runs else {}
        return orphans_among(listed, known, owner=self.owner, now=self.clock(), grace=self.grace)

    def going_with(self, secret: Object, orphan: Orphan) -> Orphan | None:
        """The Secret that an orphan refers to as one itself, if it is of the same run."""
        uid = text(secret, "metadata", "uid")
        if not uid or not _is_ours(secret, self.owner) or runs_of(secret) != orphan.runs:
            return None
        leaving = is_leaving(secret)
        named = name(secret)
        return replace(orphan, kind="Secret", name=named, uid=uid, leaving=leaving, secret="")

    def still(self, orphan: Orphan) -> bool:
        """Whether no run has taken it up since."""
        known = self.known(orphan.runs)
        return not any(run in known and known[run].ended is None for run in orphan.runs)


def orphans_among(
    objects: Iterable[Object], known: Known, *, owner: str, now: datetime, grace: timedelta
) -> Findings:
    """The orphans among these objects, and how many of the others were left alone for what."""
    orphans: list[Orphan] = []
    left: Counter[Left] = Counter()
    for one in objects:
        judged = _judged(one, known, owner, now, grace)
        if isinstance(judged, Orphan):
            orphans.append(judged)
        else:
            left[judged] += 1
    return Findings(tuple(orphans), left)


def runs_of(one: Object) -> frozenset[str]:
    """The run of an object and that run's root, as far as its labels name them."""
    return frozenset({label(one, RUN), label(one, ROOT_RUN)} - {""})


def secret_of(one: Object) -> str:
    """The Secret that a RayJob or a RayCluster refers to."""
    return text(one, "spec", "rayClusterSpec", "authOptions", "secretName") or text(
        one, "spec", "authOptions", "secretName"
    )


def _judged(
    one: Object, known: Known, owner: str, now: datetime, grace: timedelta
) -> Orphan | Left:
    if not _is_ours(one, owner):
        return "another's"
    runs, uid = runs_of(one), text(one, "metadata", "uid")
    fates = [known[run] for run in runs if run in known]
    if any(fate.ended is None for fate in fates):
        return "alive"
    made = moment(one, "metadata", "creationTimestamp")
    times = [fate.ended for fate in fates if fate.ended is not None]
    if len(fates) < len(runs):  # the age of what is not known begins with the object
        times += [made] if made else []
    if not label(one, RUN) or not uid or not name(one) or not times:
        return "unclear"
    since = max(times)
    if now - since < grace:
        return "young"
    last = max(fates, key=lambda fate: fate.ended or now, default=None)
    return Orphan(
        kind=text(one, "kind"),
        name=name(one),
        uid=uid,
        runs=runs,
        run=label(one, RUN),
        why=f"its run has ended ({last.words})" if last else UNKNOWN,
        since=since,
        leaving=is_leaving(one),
        secret=secret_of(one),
    )


def _is_ours(one: Object, owner: str) -> bool:
    return bool(owner) and label(one, MANAGED_BY) == PREFIX and label(one, OWNER) == owner
