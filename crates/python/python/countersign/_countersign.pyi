"""The native part of the package. Use what `countersign` exports."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal, final

__all__ = [
    "CallChanged",
    "ClaimKeeper",
    "ConfigRefused",
    "CountersignError",
    "Decision",
    "Forked",
    "Ledger",
    "LedgerRefused",
    "NotAsked",
    "Rules",
    "RulesRefused",
    "StoreUnavailable",
    "__version__",
    "check_json",
    "same_json",
]
__version__: str

class CountersignError(Exception): ...
class LedgerRefused(CountersignError): ...
class StoreUnavailable(CountersignError): ...
class ConfigRefused(CountersignError): ...
class RulesRefused(CountersignError): ...
class CallChanged(CountersignError): ...
class NotAsked(CountersignError): ...
class Forked(CountersignError): ...

def same_json(one: Mapping[str, Any] | str, other: Mapping[str, Any] | str) -> bool: ...
def check_json(value: Any) -> None: ...

@final
class ClaimKeeper:
    def stop(self) -> None: ...

@final
class Ledger:
    @staticmethod
    def open(url: str | None, audit_key: bytes | None, session: str | None) -> Ledger: ...
    @property
    def url(self) -> str: ...
    def park(
        self,
        waits: bool,
        *,
        run: str,
        agent: str,
        call: str,
        tool: str,
        args: Mapping[str, Any] | str,
        reason: str | None,
        decision: Decision | None,
        requester: str | None,
        idempotent: bool,
        approvals: int,
        not_the_requester: bool,
        expires_in: float | None,
        valid_for: float | None,
    ) -> Any: ...
    def get(self, waits: bool, id: str) -> Any: ...
    def wait(self, waits: bool, id: str, timeout: float | None) -> Any: ...
    def wait_for_end(self, waits: bool, id: str, timeout: float | None) -> Any: ...
    def decide(
        self,
        waits: bool,
        id: str,
        fingerprint: str,
        answer: str,
        by: str,
        args: Mapping[str, Any] | str | None,
        message: str | None,
    ) -> Any: ...
    def cancel(self, waits: bool, id: str, by: str) -> Any: ...
    def claim(self, waits: bool, id: str, worker: str | None, lease: float) -> Any: ...
    def give_back(self, id: str, token: int) -> None: ...
    def abandon(self, id: str, token: int) -> None: ...
    def keep(self, id: str, token: int, lease: float) -> ClaimKeeper: ...
    def renew(self, waits: bool, id: str, token: int, lease: float) -> Any: ...
    def settle(self, waits: bool, id: str, token: int, kind: str, value: Any, metadata: Any) -> Any: ...
    def release(self, waits: bool, id: str, token: int) -> Any: ...
    def list(self, waits: bool, state: str | None, run: str | None, limit: int) -> Any: ...
    def verify(self, waits: bool, earlier: Mapping[str, tuple[int, str]]) -> Any: ...
    def expire(self, waits: bool) -> Any: ...

@final
class Rules:
    """Rules that decide about calls: those of a preset, of files, or of a text."""

    @staticmethod
    def preset(name: Literal["developer", "reader"], *, root: str | PathLike[str] | None = None) -> Rules:
        """The rules of a preset."""

    @staticmethod
    def load(
        *paths: str | PathLike[str],
        preset: Literal["developer", "reader"] | None = None,
        root: str | PathLike[str] | None = None,
    ) -> Rules:
        """The rules of these files, with a preset below them if one is named."""

    @staticmethod
    def text(text: str, *, name: str = "rules.toml", root: str | PathLike[str] | None = None) -> Rules:
        """The rules in a text, in the format of files."""

    def decide(
        self,
        tool: str,
        args: Mapping[str, Any] | str | None = None,
        *,
        directory: str | PathLike[str] | None = None,
    ) -> Decision:
        """Decides about a call. Nothing is counted."""

    def explain(
        self,
        tool: str,
        args: Mapping[str, Any] | str | None = None,
        *,
        directory: str | PathLike[str] | None = None,
    ) -> dict[str, Any]:
        """Why a call is decided as it is: `decision`, `by` and `near`."""

    def reload(self) -> dict[str, Any]:
        """Loads the files again: `changed`, `digest`, `needs_accepting`."""

    def accept(self, digest: str) -> bool:
        """Puts the latest rules into force alone."""

    @property
    def digest(self) -> str: ...
    @property
    def files(self) -> list[tuple[str, int, int]]: ...

@final
class Decision:
    """The decision of rules about one call."""

    @property
    def decision(self) -> Literal["allow", "ask", "deny"]: ...
    @property
    def reasons(self) -> list[str]: ...
    @property
    def rules(self) -> list[str]: ...
    @property
    def offers(self) -> list[dict[str, Any]]: ...
    @property
    def every_time(self) -> bool: ...
    @property
    def grantable(self) -> bool: ...
