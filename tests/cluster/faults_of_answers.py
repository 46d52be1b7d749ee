"""What the API server answers amiss for a while, and tokens that count no more."""

from collections.abc import Callable

from tests.cluster.fault import Fault, Play, everywhere, meanwhile, running
from tests.cluster.gateway import creates, everything, reads, says, times
from tests.cluster.scenes import Scene
from tests.control.kube.a_server import Reply, Request


def _answers(reply: Reply, which: Callable[[Request], bool] = everything) -> Play:
    """For a while."""

    def strike(scene: Scene) -> None:
        with scene.gateway.ruled(times(1 << 30, which, reply)):
            meanwhile(scene)

    return strike


def _lost_answer(kind: str) -> Play:
    """The server takes what is created, and the answer does not arrive."""

    def play(scene: Scene) -> None:
        lost: list[Request] = []

        def rule(request: Request, forward: Callable[[Request], Reply]) -> Reply | None:
            if lost or not creates(kind)(request):
                return None
            forward(request)
            lost.append(request)
            return Reply(dropped=True)

        with scene.gateway.ruled(rule):
            scene.launch()
            scene.until(lambda: lost)
            running(scene)
            scene.go()

    return play


def _not_seen_yet(scene: Scene) -> None:
    """What was created just now is not there yet for the next look."""
    unseen = times(1, lambda request: "/rayjobs/" in request.path, says(404, "NotFound"))
    empty = times(2, lambda request: "labelSelector" in request.path, Reply(200, {"items": []}))

    def rule(request: Request, forward: Callable[[Request], Reply]) -> Reply | None:
        made = any(creates("rayjobs")(one) for one, _ in scene.gateway.answered)
        if not made or not reads(request):
            return None
        return unseen(request, forward) or empty(request, forward)

    with scene.gateway.ruled(rule):
        scene.launch()
        running(scene)
        scene.go()


def _stale(scene: Scene) -> None:
    """One look and then another is answered as the one before it was."""
    older: dict[str, Reply] = {}

    def rule(request: Request, forward: Callable[[Request], Reply]) -> Reply | None:
        if not reads(request):
            return None
        before = older.get(request.path)
        older[request.path] = new = forward(request)
        return before if before is not None and scene.random.random() < 0.5 else new

    with scene.gateway.ruled(rule):
        scene.launch()
        running(scene)
        scene.go()
        scene.until(scene.is_complete)


def _token_expires(scene: Scene) -> None:
    scene.token.write_text(scene.account.signed_token(scene.random.choice([-60, 1])))
    meanwhile(scene)
    scene.token.write_text(scene.account.token())


def _token_rotates(scene: Scene) -> None:
    """The old one counts no more; the new one is there a moment before, or after."""
    old, new = scene.token.read_text(), scene.account.token(seconds=3601)

    def rule(request: Request, _forward: Callable[[Request], Reply]) -> Reply | None:
        return says(401, "Unauthorized") if request.token == old else None

    late = scene.random.random() < 0.5
    if not late:
        scene.token.write_text(new)
    scene.gateway.rules.append(rule)  # until the end of the scene
    scene.pause(0.0, 1.0)
    scene.token.write_text(new)
    meanwhile(scene)


BUSY = says(429, "TooManyRequests", Retry_After="1")

FAULTS: list[Fault[Scene]] = [
    Fault("409: answer of the create lost", "RayJob", _lost_answer("rayjobs")),
    Fault("409: answer of the create lost", "Secret", _lost_answer("secrets")),
    *everywhere("410", _answers(says(410, "Expired"), reads)),
    *everywhere("429 with Retry-After", _answers(BUSY)),
    *everywhere("503", _answers(says(503, "ServiceUnavailable"))),
    Fault("stale reads", "just created", _not_seen_yet),
    Fault("stale reads", "throughout", _stale),
    *everywhere("token expired, then renewed", _token_expires),
    *everywhere("token rotated", _token_rotates),
]
