"""The routes: three files, and three questions that are answered in JSON."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from framework.errors import UserError
from framework.page_server.guard import Guard
from framework.page_server.messages import Move, Start, in_words
from framework.page_server.sessions import Sessions
from framework.page_server.shelf import Shelf

STATIC = {
    "/": ("index.html", "text/html"),
    "/style.css": ("style.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/board.js": ("board.js", "text/javascript"),
    "/readings.js": ("readings.js", "text/javascript"),
}


def make_app(shelf: Shelf, names: frozenset[str] = frozenset(), public: bool = False) -> FastAPI:
    """``names``: host names under which it may be called; ``public``: and by any address of the machine."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)  # their pages would load scripts from elsewhere
    sessions = Sessions(shelf)

    for path, (name, kind) in STATIC.items():
        app.add_api_route(path, _file(name, kind), methods=["GET"])

    @app.get("/api/choices")
    def choices() -> dict[str, Any]:
        return sessions.choices()

    @app.post("/api/sessions")
    def start(wish: Start) -> dict[str, Any]:
        return sessions.start(wish)

    @app.post("/api/sessions/{name}/steps")
    def step(name: str, move: Move) -> dict[str, Any]:
        return sessions.step(name, move.count)

    app.add_exception_handler(UserError, lambda _, error: _error(409, str(error)))
    app.add_exception_handler(RequestValidationError, _not_understood)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, lambda *_: _error(500, "something broke inside; the terminal says what"))
    app.add_middleware(Guard, names=names, public=public)
    return app


def _file(name: str, kind: str) -> Any:
    content = files("framework.page_server").joinpath("static", name).read_bytes()
    return lambda: Response(content, media_type=kind)


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status)


def _not_understood(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return _error(422, in_words(error.errors()))


def _http_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, {404: "there is nothing here", 405: "that cannot be done here"}.get(
        error.status_code, str(error.detail)))  # fmt: skip
