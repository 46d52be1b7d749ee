"""Files of one commit of a repository on the Hugging Face hub, each held to the hub's hash of it.

Only the files that the row pattern asks for are downloaded, into a folder of the dataset's own: no
cache of this machine is read or filled. An interrupted download goes on where it was. A token, if
one is needed, is taken from the environment as the hub's library does, and shown nowhere.

A mirror is a folder that `hf download --local-dir` made, whose records say of which commit it is.
"""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from factory.data import raw
from factory.data.fetch.errand import Errand
from factory.data.fetch.hashes import alike
from factory.data.progress import Ticker
from factory.data.sources import HuggingFace
from factory.errors import SourceError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

AT_ONCE = 8
"""Downloads at the same time."""

RECORDS = Path(".cache") / "huggingface" / "download"
"""Where the hub's library records what it downloaded, below the folder that it was put into."""


def fetch(source: HuggingFace, errand: Errand) -> Path:
    """The folder that holds the files.

    Raises:
        SourceError: the hub does not hand them out, or they are not what the commit holds.
    """
    files = errand.scratch / "files"
    shutil.rmtree(files, ignore_errors=True)
    if errand.mirror is not None:
        snapshot, hashes = errand.mirror, _recorded(source, errand.mirror)
    else:
        snapshot, hashes = errand.scratch / "hub", _asked(source, lambda: _listed(source))
    names = raw.wanted_of(list(hashes), source.rows)
    if errand.mirror is None:
        ticker = Ticker(errand.say, "files downloaded")
        _asked(source, lambda: _download(source, names, snapshot, ticker))
    for name in Ticker(errand.say, "files verified").over(names):
        _verify(snapshot / name, hashes[name], name, source)
        copy = files / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(snapshot / name, copy)
    return files


def _hub() -> "HfApi":
    from huggingface_hub import HfApi
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    return HfApi(library_name="ai-factory")


def _listed(source: HuggingFace) -> dict[str, str]:
    """Every file of the commit with its hash: its sha256 where it is kept in LFS, else Git's."""
    from huggingface_hub.hf_api import RepoFile

    tree = _hub().list_repo_tree(
        source.repo, recursive=True, revision=source.revision, repo_type=source.kind
    )
    files = [entry for entry in tree if isinstance(entry, RepoFile)]
    for file in files:
        path = PurePosixPath(file.path)
        if path.is_absolute() or ".." in path.parts:
            raise SourceError(f"{source.address} holds the path {file.path!r}, which leaves it.")
    return {file.path: file.lfs.sha256 if file.lfs else file.blob_id for file in files}


def _download(source: HuggingFace, names: list[str], folder: Path, ticker: Ticker) -> None:
    hub = _hub()

    def one(name: str) -> str:
        return hub.hf_hub_download(
            source.repo,
            name,
            repo_type=source.kind,
            revision=source.revision,
            local_dir=folder,
        )

    with ThreadPoolExecutor(AT_ONCE) as pool:
        downloads = [pool.submit(one, name) for name in names]
        try:
            for download in ticker.over(as_completed(downloads)):
                download.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _asked[T](source: HuggingFace, ask: Callable[[], T]) -> T:
    """Ask the hub; errors in our words, since the library's own quote addresses that are signed."""
    import httpx
    from huggingface_hub import errors

    try:
        return ask()
    except errors.GatedRepoError:
        problem = "is gated: accept its terms on the hub, and give a token that may read it"
    except errors.RepositoryNotFoundError:
        problem = "is not on the hub, or is private and needs a token. Check repo and kind"
    except errors.RevisionNotFoundError:
        problem = f"has no commit {source.revision}: mistyped, or gone with a rewritten history"
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "nothing")
        problem = f"could not be fetched: the hub answers {status}"
    except (errors.HFValidationError, errors.LocalEntryNotFoundError, httpx.HTTPError) as error:
        problem = (
            f"could not be fetched ({type(error).__name__}): look for a way to the hub from here. "
            "What has arrived is kept, and running the step again goes on from there"
        )
    # Outside the handlers: what the library said must not become the cause.
    raise SourceError(f"{source.address} {problem}. FACTORY_MIRRORS can name a local copy.")


def _recorded(source: HuggingFace, snapshot: Path) -> dict[str, str]:
    """The files of a local snapshot with the hashes that the hub gave for them."""
    records = snapshot / RECORDS
    found: dict[str, str] = {}
    for record in sorted(records.rglob("*.metadata")):
        name = record.relative_to(records).as_posix().removesuffix(".metadata")
        commit, etag, *_ = [*record.read_text(encoding="utf-8").splitlines(), "", ""]
        if commit != source.revision:
            raise SourceError(
                f"The mirror {snapshot} has {name} of commit {commit or 'none'}, declared is "
                f"{source.revision}. Download that one: hf download {source.repo} "
                f"--repo-type {source.kind} --revision {source.revision} --local-dir FOLDER"
            )
        found[name] = etag
    if not found:
        raise SourceError(
            f"The mirror {snapshot} is neither a file with `mirror.toml` nor a folder that "
            f"`hf download --local-dir` made: nothing is recorded in {records}."
        )
    return found


def _verify(path: Path, stated: str, name: str, source: HuggingFace) -> None:
    if not path.is_file():
        raise SourceError(f"{path} is not there, but {source.address} has {name}. Copy it anew.")
    found = alike(path, stated)
    if found != stated:
        raise SourceError(
            f"{path} is not what {source.address} has: its hash is {found}, the hub states "
            f"{stated}. Nothing of it was used. Remove it and run the step again."
        )
