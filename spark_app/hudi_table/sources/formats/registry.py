"""A schema registry with Confluent's API: the text of a schema by its id, with what it refers to
put in its place.

Facts: `GET /schemas/ids/N` answers `schema`, `schemaType` (PROTOBUF, JSON, absent for Avro) and
`references`, each with the `name`, `subject` and `version` under which `GET
/subjects/S/versions/V` has it. A schema never changes under its id, so it is asked for once.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPMessage
from typing import IO, Any

from hudi_table.errors import AccessDeniedError, InvalidDataError, InvalidRequestError, UnavailableError
from hudi_table.model.job.variables import REGISTRY_PASSWORD, REGISTRY_USERNAME
from hudi_table.model.json_text import parse_json

TIMEOUT_SECONDS = 10.0
REFERENCES_MAX = 100
SCHEMA_BYTES_MAX = 4 << 20


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects. Credentials go to no other origin than the one that they are for."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """The request that follows. Raises InvalidRequestError."""
        before, target = _origin(req.full_url), _origin(newurl)
        if req.has_header("Authorization") and target != before:
            fp.close()
            raise InvalidRequestError(
                f"the schema registry at {before} redirects to {target}, which is not sent its credentials: give the URL of the registry itself"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = urllib.request.build_opener(_Redirects)


def _origin(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class Registry:
    """A registry at `url`; credentials are those of the environment."""

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidRequestError(f"the schema registry is at {url!r}; give http(s)://host:port")
        self._url = url.rstrip("/")
        user = environment.get(REGISTRY_USERNAME)
        text = f"{user}:{environment.get(REGISTRY_PASSWORD, '')}"
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if user:
            self._headers["Authorization"] = f"Basic {base64.b64encode(text.encode()).decode()}"

    def avro_schema(self, number: int) -> str:
        """The Avro schema of an id, whole. Raises InvalidDataError if there is none, or it is of
        another type."""
        return self._avro(self._get(f"/schemas/ids/{number}", f"schema {number}"), f"schema {number}")

    def protobuf_texts(self, number: int) -> tuple[str, dict[str, str]]:
        """The Protocol Buffers definition of an id, and those that it and they refer to, by the
        names of their imports. Raises InvalidDataError if there is none, or it is of another
        type."""
        answer = self._of_type(number, "PROTOBUF", "protobuf")
        named: dict[str, str] = {}
        self._collect(answer, named, lambda text, _: text)
        return str(answer["schema"]), named

    def json_documents(self, number: int) -> tuple[Any, dict[str, Any]]:
        """The JSON Schema of an id, and those that it and they refer to, by the names of these
        references. Raises InvalidDataError if there is none, or it is of another type."""
        answer = self._of_type(number, "JSON", "json")
        named: dict[str, Any] = {}
        self._collect(answer, named, _document)
        return _document(str(answer["schema"]), f"schema {number}"), named

    def newest_avro_schema(self, subject: str) -> str | None:
        """The newest Avro schema of a subject, whole; None if there is no such subject. Raises
        InvalidDataError if it is of another type."""
        what = f"subject {subject}"
        answer = self._asked(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/latest", what)
        return self._avro(answer, what) if answer is not None else None

    def _of_type(self, number: int, wanted: str, form: str) -> Mapping[str, Any]:
        answer = self._get(f"/schemas/ids/{number}", f"schema {number}")
        kind = answer.get("schemaType", "AVRO")
        if kind != wanted:
            raise InvalidDataError(f"schema {number} of the registry is of type {kind}, and the format is {form}")
        return answer

    def _avro(self, answer: Mapping[str, Any], what: str) -> str:
        kind = answer.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise InvalidDataError(f"{what} of the registry is of type {kind}, and the format is avro")
        return self._whole(answer, what)

    def _whole(self, answer: Mapping[str, Any], what: str) -> str:
        named: dict[str, Any] = {}
        self._collect(answer, named, _document)
        if not named:
            return str(answer["schema"])
        return json.dumps(_inlined(_document(str(answer["schema"]), what), named, set(), ""))

    def _collect(self, answer: Mapping[str, Any], named: dict[str, Any], read: Callable[[str, str], Any]) -> None:
        """What a schema refers to, and what that does, by name."""
        for each in answer.get("references") or ():
            name, subject, version = str(each["name"]), str(each["subject"]), int(each["version"])
            if name in named:
                continue
            if len(named) >= REFERENCES_MAX:
                raise InvalidDataError(f"a schema of the registry refers to more than {REFERENCES_MAX} others")
            what = f"version {version} of subject {subject}"
            found = self._get(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/{version}", what)
            named[name] = read(str(found["schema"]), what)
            self._collect(found, named, read)

    def _get(self, path: str, what: str) -> Mapping[str, Any]:
        found = self._asked(path, what)
        if found is None:
            raise InvalidDataError(f"the schema registry at {self._url} has no {what}")
        return found

    def _asked(self, path: str, what: str) -> Mapping[str, Any] | None:
        """What it answers, None where it has no such thing."""
        request = urllib.request.Request(self._url + path, headers=self._headers)  # noqa: S310 - http(s) alone, see above
        try:
            with _OPENER.open(request, timeout=TIMEOUT_SECONDS) as answer:
                found = parse_json(answer.read(SCHEMA_BYTES_MAX))
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 404:
                return None
            if error.code in (401, 403):
                raise AccessDeniedError(
                    f"the schema registry at {self._url} refuses the credentials ({REGISTRY_USERNAME}, {REGISTRY_PASSWORD})"
                ) from error
            raise UnavailableError(f"the schema registry at {self._url} answers {error.code} for {what}") from error
        except (OSError, ValueError) as error:
            raise UnavailableError(f"the schema registry at {self._url} does not answer: {error}") from error
        if not isinstance(found, dict) or not isinstance(found.get("schema"), str):
            raise UnavailableError(f"the schema registry at {self._url} answers no schema for {what}")
        return found


def _document(text: str, what: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise InvalidDataError(f"{what} of the registry is no JSON: {error}") from error


def _inlined(kind: Any, named: Mapping[str, Any], done: set[str], space: str) -> Any:
    """A schema in which each name is defined where it first comes."""
    if isinstance(kind, str):
        full = kind if "." in kind or not space else f"{space}.{kind}"
        name = next((each for each in (full, kind) if each in named), None)
        if name is None or name in done:
            return kind
        done.add(name)
        return _inlined(named[name], named, done, "")
    if isinstance(kind, list):
        return [_inlined(each, named, done, space) for each in kind]
    if not isinstance(kind, dict):
        return kind
    space = str(kind.get("namespace", str(kind.get("name", "")).rpartition(".")[0] or space))
    found = dict(kind)
    if isinstance(kind.get("fields"), list):
        found["fields"] = [{**each, "type": _inlined(each["type"], named, done, space)} for each in kind["fields"]]
    for key in ("items", "values", "type"):
        if isinstance(kind.get(key), (dict, list, str)) and key in kind:
            found[key] = _inlined(kind[key], named, done, space)
    return found
