"""The server's own log: plain lines, or one JSON object per line."""

from __future__ import annotations

import json
import logging
import sys
from typing import Literal

LogFormat = Literal["text", "json"]
_FIELDS = ("job", "task", "kind")


class JsonFormatter(logging.Formatter):
    """Formats each record as a JSON object, with its job and task if it has one."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as one line."""
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
    """Sends this process's log to standard error."""
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
    # Logging every request is left to a proxy in front of the server.
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
    for name in ("alembic", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)
