"""The launcher of a cluster: each attempt goes to the kind of object that its table asks for, if
that is served.

`Auto` takes the first Spark operator whose definition is served, else Jobs. Work that needs no
executors is always a Job of one pod: it gains nothing from an operator of Spark. Runs are looked
for in every kind, for a table's launcher may change while one is at work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hudi_operator.api.fields.spark import Launcher as Choice
from hudi_operator.api.resources import Identity
from hudi_operator.api.status import RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.errors import InvalidSpecError, LauncherNotServedError
from hudi_operator.kube.rest import Rest
from hudi_operator.kube.served import Served
from hudi_operator.launchers.apache_spark_operator import APACHE_SPARK_OPERATOR
from hudi_operator.launchers.job import JOB
from hudi_operator.launchers.objects import Kind, ObjectLauncher, RunReader
from hudi_operator.launchers.owners import Owners
from hudi_operator.launchers.spark_operator import SPARK_OPERATOR
from hudi_operator.manifests.pods import PodSettings
from hudi_operator.manifests.spark_conf import refused
from hudi_operator.plan.effects import Launch
from hudi_operator.plan.observed import Problem

KINDS: tuple[Kind, ...] = (SPARK_OPERATOR, APACHE_SPARK_OPERATOR, JOB)
"""In the order in which `Auto` takes them."""
NAMES = tuple(kind.name for kind in KINDS)


class ClusterLauncher:
    """Launches as `spec.spark.launcher` says. `allowed`: names of the kinds that this operator has
    the rights to."""

    def __init__(self, rest: Rest, settings: PodSettings, served: Served, allowed: Sequence[str] = NAMES) -> None:
        self._run_reader = RunReader(rest)
        self._rest = rest
        self._owners = Owners()
        self._served = served
        self._launchers = {
            kind.name: ObjectLauncher(rest, settings, kind) for kind in KINDS if kind.name in {*allowed, JOB.name}
        }

    def launch(self, owner: Identity, wanted: Launch, secret: Mapping[str, str]) -> bool:
        """See `Launcher.launch`. Raises LauncherNotServedError for what the cluster has not,
        InvalidSpecError for properties of Spark that are refused."""
        errors = refused(wanted.spark.conf) if wanted.spec.engine == "Spark" else ()
        if errors:
            raise InvalidSpecError("; ".join(str(error) for error in errors))
        chosen = self._chosen(wanted)
        self._owners.add(owner.uid)
        others = [each for each in self._there() if each is not chosen]
        if any(each.holds(owner, wanted.run.name) for each in others):
            return False  # begun before the choice changed
        return chosen.launch(owner, wanted, secret)

    def objection(self, owner: Identity, spec: HudiTableSpec) -> Problem | None:
        """See `Launcher.objection`: also a launcher that is not there."""
        found = self._launchers[JOB.name].objection(owner, spec)
        if found is not None or not spec.spark.executor.instances:
            return found
        try:
            self._named(spec.spark.launcher)
        except LauncherNotServedError as error:
            return Problem(error.name(), str(error))
        return None

    def cancel(self, owner: Identity, name: str) -> None:
        """See `Launcher.cancel`."""
        for launcher in self._there():
            launcher.cancel(owner, name)

    def runs(self, owner: Identity) -> tuple[RunStatus, ...]:
        """See `Launcher.runs`."""
        if not self._owners.may_have(owner.uid):
            return ()
        return self._run_reader.runs(owner, [(each.kind, o) for each in self._there() for o in each.objects(owner)])

    def heard(self, uid: str) -> None:
        """See `Launcher.heard`."""
        self._owners.add(uid)

    def uids(self) -> Collection[str]:
        """The resources of which anything is remembered."""
        return self._owners.uids()

    def forget(self, uids: Collection[str]) -> None:
        """These resources are gone: of their attempts, too, nothing is remembered."""
        self._owners.forget(uids)
        self._run_reader.forget(uids)

    def know_owners(self, namespaces: Sequence[str]) -> None:
        """List who has attempts, in all namespaces if none is named: from now on the others' are
        not asked for. Raises HudiError."""
        self._owners.find(self._rest, [each.kind for each in self._there()], namespaces)

    def watchable(self, namespaces: Sequence[str]) -> tuple[Kind, ...]:
        """The kinds of objects that attempts may have here and that we may watch in these
        namespaces (none: all). A watch that is refused would end the others, too; what is not
        watched is looked at now and then."""
        found = [each.kind for each in self._there()]
        return tuple(kind for kind in found if kind is JOB or self._may_watch(kind, namespaces))

    def _may_watch(self, kind: Kind, namespaces: Sequence[str]) -> bool:
        verbs = ("list", "watch")
        return all(self._served.may(v, kind.version, kind.plural, n) for n in namespaces or ("",) for v in verbs)

    def _there(self) -> list[ObjectLauncher]:
        return [each for each in self._launchers.values() if self._serves(each.kind)]

    def _serves(self, kind: Kind) -> bool:
        return kind is JOB or self._served.serves(kind.version, kind.plural)

    def _chosen(self, wanted: Launch) -> ObjectLauncher:
        executors = wanted.spark.executor.instances if wanted.spec.engine == "Spark" else 0
        return self._named(wanted.spark.launcher) if executors else self._launchers[JOB.name]

    def _named(self, choice: Choice) -> ObjectLauncher:
        """What a manifest names. Raises LauncherNotServedError."""
        if choice is Choice.JOB:
            return self._launchers[JOB.name]
        if choice is Choice.AUTO:
            return self._there()[0]
        found = self._launchers.get(choice.value)
        if found is None:
            raise LauncherNotServedError(_unknown(choice, tuple(self._launchers)))
        if not self._serves(found.kind):
            raise LauncherNotServedError(
                f"spec.spark.launcher is {choice.value}, but this cluster serves no {found.kind.plural} of "
                f"{found.kind.version}: install that Spark operator, or use Auto or Job"
            )
        return found


def _unknown(choice: Choice, known: Sequence[str]) -> str:
    if choice is Choice.LOCAL:
        return "spec.spark.launcher is Local, which runs processes beside hudictl local; in a cluster use Auto or Job"
    return f"spec.spark.launcher is {choice.value}, which this operator was started without; it has Auto, {', '.join(known)}"
