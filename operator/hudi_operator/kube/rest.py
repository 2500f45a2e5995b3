"""The few calls that we make of an API server. Documents in and out, each call bounded in time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from kubernetes.client import ApiClient
from urllib3.exceptions import HTTPError

from hudi_table.errors import (
    AccessDeniedError,
    HudiError,
    InvalidRequestError,
    ObjectExistsError,
    ObjectNotFoundError,
    UnavailableError,
)

CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0
JSON, APPLY, MERGE = "application/json", "application/apply-patch+yaml", "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PAGE, OBJECTS_PAGE = 500, 200
UNREACHABLE = "unreachable"
SAID_LENGTH_MAX = 400
Document = dict[str, Any]
CallMeter = Callable[[str, str], None]
"""Counts every call: the HTTP method, and the status of the answer or `unreachable`."""


def _uncounted(method: str, code: str) -> None:
    """Where nobody counts."""


class Rest:
    """Calls by path, such as `/apis/batch/v1/namespaces/lake/jobs`. For several threads at once.

    Every call raises ObjectNotFoundError for 404, ObjectExistsError for 409, AccessDeniedError for
    401 and 403, InvalidRequestError for what the server does not take, and UnavailableError for
    whatever may go better later.
    """

    def __init__(self, api: ApiClient, meter: CallMeter = _uncounted) -> None:
        self._api = api
        self._meter = meter

    def get(self, path: str, **query: str) -> Document:
        """One object, or a list of them."""
        return self._called("GET", path, query)

    def objects(self, path: str, **query: str) -> Iterator[Document]:
        """Every object of a collection as of one moment, asked for page by page: all of them at
        once are too large."""
        yield from self._pages(path, query, OBJECTS_PAGE, JSON)

    def metadata(self, path: str, **query: str) -> Iterator[Document]:
        """The metadata of every object of a collection as of one moment, asked for page by page."""
        yield from (item["metadata"] for item in self._pages(path, query, PAGE, METADATA))

    def _pages(self, path: str, query: dict[str, str], page: int, accept: str) -> Iterator[Document]:
        query["limit"] = str(page)
        while True:
            found = self._request("GET", path, query, None, JSON, accept)
            # Without an item it is null.
            yield from found["items"] or ()
            more = found["metadata"].get("continue")
            if not more:
                return
            query["continue"] = more

    def lines(self, path: str, **query: str) -> Iterator[str]:
        """A text, line by line, as it comes; a line may take as long as it likes."""
        request = self._api.param_serialize(
            method="GET",
            resource_path=path,
            query_params=list(query.items()),
            header_params={"Accept": "*/*"},
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._api.call_api(*request, _request_timeout=(CONNECT_SECONDS, None))
            if answer.status == HTTPStatus.NO_CONTENT:
                return
            if answer.status != HTTPStatus.OK:
                answer.read()
                raise _error(answer.status, _message(answer.data or b""), path)
            rest = b""
            for chunk in answer.response.stream(decode_content=True):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in whole)
            if rest:
                yield rest.decode("utf-8", "replace")
        except (HTTPError, OSError) as error:
            raise UnavailableError(f"the API server cannot be reached: {error}", path=path) from error

    def create(self, path: str, body: Mapping[str, Any]) -> Document:
        """A new object in the collection at `path`."""
        return self._called("POST", path, {}, body, JSON)

    def replace(self, path: str, body: Mapping[str, Any]) -> Document:
        """Put the object there, if it still is as its `resourceVersion` says; else
        ObjectExistsError."""
        return self._called("PUT", path, {}, body, JSON)

    def apply(self, path: str, body: Mapping[str, Any], manager: str) -> Document:
        """Server-side apply: the fields of `body` become those of `manager`, whoever had them."""
        return self._called("PATCH", path, {"fieldManager": manager, "force": "true"}, body, APPLY)

    def merge(self, path: str, patch: Mapping[str, Any]) -> Document:
        """A JSON merge patch."""
        return self._called("PATCH", path, {}, patch, MERGE)

    def delete(self, path: str, *, uid: str, wait: bool = False) -> Document:
        """Delete the object of this uid, its dependents in the background; with `wait` it stays
        until they are gone. ObjectExistsError says that another has its name."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        return self._called(
            "DELETE", path, {}, {**options, "propagationPolicy": "Foreground" if wait else "Background"}, JSON
        )

    def _called(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None = None, kind: str = JSON
    ) -> Document:
        return self._request(method, path, query, body, kind, JSON)

    def _request(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None, kind: str, accept: str
    ) -> Document:
        request = self._api.param_serialize(
            method=method,
            resource_path=path,
            query_params=list(query.items()),
            header_params={"Accept": accept, **({"Content-Type": kind} if body is not None else {})},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._api.call_api(*request, _request_timeout=(CONNECT_SECONDS, ANSWER_SECONDS))
            answer.read()
        except (HTTPError, OSError) as error:
            self._meter(method, UNREACHABLE)
            raise UnavailableError(f"the API server cannot be reached: {error}", path=path) from error
        self._meter(method, str(answer.status))
        text = answer.data or b""
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise _error(answer.status, _message(text), path)
        found = _document(text)
        if found is None:
            said = text.decode("utf-8", "replace")[:SAID_LENGTH_MAX]
            raise UnavailableError(f"what answers is no API server: {said}", path=path)
        return found


def _document(text: bytes) -> Document | None:
    """None for anything else, such as the page of a proxy."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _message(text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.decode("utf-8", "replace")[:SAID_LENGTH_MAX]


def _error(status: int, said: str, path: str) -> HudiError:
    match status:
        case HTTPStatus.NOT_FOUND:
            return ObjectNotFoundError(said, path=path)
        case HTTPStatus.CONFLICT:
            return ObjectExistsError(said, path=path)
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return AccessDeniedError(f"the API server refuses: {said}", path=path)
        case HTTPStatus.BAD_REQUEST | HTTPStatus.UNPROCESSABLE_ENTITY | HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return InvalidRequestError(f"the API server does not take it: {said}", path=path)
    return UnavailableError(f"the API server answered {status}: {said}", path=path)
