"""What production code does not do because somebody else's text or bytes might come by: unpickle,
evaluate, run a shell, build SQL of strings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.sources import Source, production_sources, python_sources

FORBIDDEN = {
    "eval": "parse it",
    "exec": "call a function",
    "compile": "call a function",
    "__import__": "use importlib with a name of ours",
    "os.system": "use subprocess with a list",
    "os.popen": "use subprocess with a list",
    "tempfile.mktemp": "use tempfile.mkstemp",
    "yaml.load": "use yaml.safe_load",
    "yaml.unsafe_load": "use yaml.safe_load",
    "yaml.full_load": "use yaml.safe_load",
    "marshal.loads": "use JSON",
    "shelve.open": "use JSON",
    "pickle.load": "use JSON",
    "pickle.loads": "use JSON",
    "cloudpickle.loads": "use JSON",
    "numpy.load": "use Arrow",
    "np.load": "use Arrow",
    "ssl._create_unverified_context": "trust an authority",
}
MAY_UNPICKLE = {
    "spark_app/hudi_spark/engine.py": "what a driver hands to its own tasks and they to it, over Spark's authenticated wire",
    "spark_app/hudi_spark/writer.py": "the same",
    "spark_app/hudi_spark/jobs/ingest_spark.py": "the same",
    "spark_app/hudi_spark/jobs/ingests/kafka/parts.py": "the same",
    "spark_app/hudi_spark/jobs/sifting/parts.py": "the same",
}


def names_of_calls(source: Source) -> Iterator[tuple[int, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


def dangers(source: Source) -> list[str]:
    """Calls that are forbidden, and arguments that are."""
    found = [
        f"{source.path}:{line} {name}: {FORBIDDEN[name]}" for line, name in names_of_calls(source) if name in FORBIDDEN
    ]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.keyword) and node.arg in ("shell", "verify", "check_hostname", "allow_pickle"):
            bad = isinstance(node.value, ast.Constant) and node.value.value is (node.arg in ("shell", "allow_pickle"))
            found += [f"{source.path}:{node.value.lineno} {node.arg}={ast.unparse(node.value)}"] if bad else []
        if isinstance(node, ast.ImportFrom) and node.module in ("pickle", "marshal", "shelve", "dill"):
            found.append(
                f"{source.path}:{node.lineno} from {node.module} import: import the module, so that its use is seen"
            )
    return found


def test_nothing_is_unpickled_evaluated_or_run_by_a_shell() -> None:
    found = [
        each
        for source in python_sources()
        if source.is_production or source.path.startswith(("scripts/", "image/", "charts/"))
        for each in dangers(source)
        if not ("pickle.loads" in each and source.path in MAY_UNPICKLE)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", MAY_UNPICKLE)
def test_every_exception_is_still_needed(path: str) -> None:
    assert [each for source in production_sources() if source.path == path for each in dangers(source)]


@pytest.mark.parametrize(
    "text",
    [
        "eval(x)", "import pickle\npickle.loads(x)", "from pickle import loads", "subprocess.run(x, shell=True)",
        "requests.get(x, verify=False)", "np.load(x, allow_pickle=True)", "yaml.load(x)",
    ],
)  # fmt: skip
def test_a_danger_is_seen(text: str) -> None:
    assert dangers(Source("x.py", text))


def built_statements(source: Source) -> list[str]:
    """Calls of `.sql(…)` and `.execute(…)` whose statement is put together on the spot."""
    return [
        f"{source.path}:{node.lineno}"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("sql", "execute", "executemany")
        for argument in node.args[:1]
        if not isinstance(argument, ast.Name | ast.Attribute) and not is_literal(argument)
    ]


def is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_no_statement_is_built_of_strings() -> None:
    """A statement comes whole, and checked: hudi_table.services.select_check."""
    found = [each for source in production_sources() for each in built_statements(source)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text", ['s.sql(f"select {x}")', 's.sql("select " + x)', 'c.execute("a %s" % x)', 's.sql("{}".format(x))']
)
def test_a_statement_that_is_built_is_seen(text: str) -> None:
    assert built_statements(Source("x.py", text))


def test_no_digit_is_asked_of_unicode() -> None:
    """`'²'.isdigit()` holds, and `int('²')` raises."""
    asked = ("isdigit", "isdecimal", "isnumeric")
    found = [
        f"{source.path}:{node.lineno} {node.attr}: use hudi_table.model.digits"
        for source in production_sources()
        if source.path != "spark_app/hudi_table/model/digits.py"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in asked
    ]
    assert not found


OPENS_WRITER = "open_writer"
"""Called by a sink, which does all by a function that is handed to it: `_translated`."""


def unguarded(tree: ast.AST) -> list[int]:
    """Lines with a call of obstore that is not handed to `_request`, in a lambda or in a function
    that it names."""
    handed = [
        argument
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "_request"
        for argument in call.args
    ]
    names = {each.id for part in handed for each in ast.walk(part) if isinstance(each, ast.Name)} | {OPENS_WRITER}
    inner = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name in names]
    guarded = {id(node) for root in (*handed, *inner) for node in ast.walk(root)}
    found = (each for each in ast.walk(tree) if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name))
    return [each.lineno for each in found if each.value.id == "obstore" and id(each) not in guarded]  # type: ignore[attr-defined] # a name


def test_obstore_has_two_doors_where_its_errors_and_panics_become_ours() -> None:
    """Requests, and those that have a condition."""
    store = "spark_app/hudi_table/table/store/"
    doors = {f"{store}remote.py", f"{store}owned/versioned.py"}
    found = [
        source
        for source in production_sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import) and any(name.name == "obstore" for name in node.names)
    ]
    assert {source.path for source in found} == doors
    assert all(unguarded(source.tree) == [] for source in found)
    assert unguarded(ast.parse("import obstore\nobstore.head(store, key)")) == [2]
