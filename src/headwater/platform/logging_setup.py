"""The server's own log: lines for people, or a JSON object a line for programs."""

from __future__ import annotations

import json
import logging
import sys
from typing import Literal

LogFormat = Literal["text", "json"]
_FIELDS = ("job", "task", "kind")


class JsonFormatter(logging.Formatter):
    """One JSON object for each record, with the job and task that it is about where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        fields: dict[str, object] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name in _FIELDS if (value := getattr(record, name, None))}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def set_up_logging(log_format: LogFormat) -> None:
    """Sends what this process logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = True
    # A line for each request is the business of what stands before the server.
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
    for name in ("alembic", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)
