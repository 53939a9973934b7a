"""`exactly-once alert` says each thing once, `exactly-once metrics` gives figures to Prometheus."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession

from dbt_exactly_once.cli import main
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.report.alert import alert
from dbt_exactly_once.report.metrics import METRICS, metrics_text

DOUBTS = {
    "kind": "DOUBTS",
    "trigger_name": "letters",
    "documents": 1200,
    "what": "documents in doubt that nobody has looked at",
    "what_to_do": "look at them",
}
REJECTED = {
    "kind": "REJECTED",
    "trigger_name": None,
    "documents": 3,
    "what": "rows for deliveries that were rejected and have not come in since",
    "what_to_do": "land them again, corrected",
}


@dataclass
class Webhook:
    """A web server that keeps what is posted to it."""

    url: str = ""
    status: int = 200
    posted: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [body["text"] for _, body in self.posted]


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    found = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.posted.append((self.headers["Content-Type"], json.loads(body)))
            self.send_response(found.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on the screen."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}/services/secret"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield found
    server.shutdown()
    server.server_close()


def test_each_thing_is_said_once_and_once_when_it_is_solved(
    webhook: Webhook, tmp_path: Path
) -> None:
    memory = tmp_path / "logs" / "alert.json"

    def look(*rows: dict[str, Any]) -> None:
        alert(lambda _: list(rows), "shop", webhook.url, memory)

    look()
    assert webhook.posted == []
    look(DOUBTS)
    assert webhook.posted == [
        (
            "application/json; charset=utf-8",
            {
                "text": "To do in shop:\n"
                "- letters: 1,200 documents in doubt that nobody has looked at. look at them"
            },
        )
    ]
    # more documents of the same thing are no other thing
    look({**DOUBTS, "documents": 1300})
    assert len(webhook.posted) == 1
    look(DOUBTS, REJECTED)
    assert webhook.texts[1:] == [
        "To do in shop:\n"
        "- 3 rows for deliveries that were rejected and have not come in since. land them again, "
        "corrected\n"
        "Still to do: 1"
    ]
    look(REJECTED)
    look(REJECTED)
    look()
    look()
    assert webhook.texts[2:] == [
        "Solved in shop:\n"
        "- letters: 1,200 documents in doubt that nobody has looked at. look at them\n"
        "Still to do: 1",
        "Solved in shop:\n"
        "- 3 rows for deliveries that were rejected and have not come in since. land them again, "
        "corrected",
    ]
    look(DOUBTS)
    assert len(webhook.posted) == 5, "what comes again is said again"


def test_each_schema_has_a_memory_of_its_own(webhook: Webhook, tmp_path: Path) -> None:
    for schema in ("shop", "post", "shop", "post"):
        alert(lambda _: [DOUBTS], schema, webhook.url, tmp_path / "alert.json")
    assert [text.partition(":")[0] for text in webhook.texts] == ["To do in shop", "To do in post"]


def test_what_the_webhook_has_not_taken_is_sent_again(webhook: Webhook, tmp_path: Path) -> None:
    memory = tmp_path / "alert.json"

    def told(url: str) -> str:
        with pytest.raises(ExactlyOnceError) as error:
            alert(lambda _: [DOUBTS], "shop", url, memory)
        return error.value.msg

    webhook.status = 503
    again = "has not taken the message, the next alert sends it again:"
    assert told(webhook.url) == f"the webhook at 127.0.0.1 {again} it answers 503"
    assert told("http://127.0.0.1:1/secret") == (
        f"the webhook at 127.0.0.1 {again} Connection refused"
    )
    assert told("file:///etc/passwd") == (
        "the URL of the webhook has to begin with https:// or http://"
    )
    assert not memory.exists()
    webhook.status = 200
    assert alert(lambda _: [DOUBTS], "shop", webhook.url, memory) is not None
    assert len(webhook.texts) == 2

    for text in ("{", "[]", "null", '{"shop": []}'):
        memory.write_text(text)
        assert told(webhook.url) == (
            f"{memory}, which keeps what was posted, is not as this command has written it: remove "
            "it, and all is posted again"
        ), text


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/services/secret path",
        "http://127.0.0.1:1/services/secr\u00e8t",
        "http://127.0.0.1:secret/services",
        "http://[secret/services",
    ],
)
def test_a_url_that_cannot_be_posted_to_is_told_without_its_secret(
    url: str, tmp_path: Path
) -> None:
    with pytest.raises(ExactlyOnceError) as error:
        alert(lambda _: [DOUBTS], "shop", url, tmp_path / "alert.json")
    assert error.value.msg.startswith("the URL of the webhook is none that can be posted to: ")
    assert "secr" not in error.value.msg


def test_an_answer_that_is_not_http_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"SSH-2.0-x\r\n")

        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/secret"
        with pytest.raises(ExactlyOnceError) as error:
            alert(lambda _: [DOUBTS], "shop", url, tmp_path / "alert.json")
    assert error.value.msg == (
        "the webhook at 127.0.0.1 has not taken the message, the next alert sends it again: "
        "its answer is not HTTP"
    )


def test_figures_are_told_as_prometheus_reads_them() -> None:
    def ask(sql: str) -> list[dict[str, Any]]:
        if "exactly_once_statistics" in sql:
            return [{"trigger_name": 'a "b"\\\n', "status": "NEW", "value": 5}]
        if "things_to_do" in sql:
            return [{"kind": "REJECTED", "trigger_name": None, "value": 3}]
        if "seconds_to_publication" in sql:
            return [{"value": 4.25}]
        return []

    lines = metrics_text(ask, "shop").splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'exactly_once_deliveries{trigger_name="a \\"b\\"\\\\\\n",status="NEW"} 5',
        'exactly_once_things_to_do{kind="REJECTED",trigger_name=""} 3',
        "exactly_once_last_run_seconds 4.25",
    ]
    for metric in METRICS:
        assert f"# HELP exactly_once_{metric.name} {metric.help}" in lines
        assert f"# TYPE exactly_once_{metric.name} gauge" in lines


def test_where_to_post_must_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alert"]) == 1
    assert capsys.readouterr().err == (
        "exactly-once: nowhere to post: give the URL with --webhook or as "
        "EXACTLY_ONCE_ALERT_WEBHOOK\n"
    )


def test_the_commands_read_the_views_of_a_lake(
    spark: SparkSession,
    profiles_dir: Path,
    tmp_path: Path,
    webhook: Webhook,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    runs.run("seed")
    runs.run("run")
    place = ["--project-dir", str(runs.folder), "--profiles-dir", str(runs.folder)]
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"delivery_id": "d1"}\n')
    assert main(["land", str(bad), *place]) == 1
    runs.run("run")
    monkeypatch.setenv("EXACTLY_ONCE_ALERT_WEBHOOK", webhook.url)
    capsys.readouterr()
    for told in ("posted: 1 new, 0 solved", "nothing has changed: nothing is posted"):
        assert main(["alert", *place]) == 0
        assert capsys.readouterr().out == f"{told}\n"
    (text,) = webhook.texts
    assert text.startswith(f"To do in {runs.schema}:\n- 1 rows for deliveries that were rejected")
    assert (runs.folder / "logs" / "alert.json").exists()

    assert main(["metrics", *place]) == 0
    said = capsys.readouterr().out
    assert 'exactly_once_things_to_do{kind="REJECTED",trigger_name=""} 1\n' in said
    assert re.search(r"^exactly_once_last_run_start_timestamp_seconds 1\d{9}$", said, re.MULTILINE)
    assert re.search(r"^exactly_once_last_run_taken 0$", said, re.MULTILINE)
    file = tmp_path / "exactly_once.prom"
    assert main(["metrics", "--output", str(file), *place]) == 0
    assert capsys.readouterr().out == ""
    assert file.read_text(encoding="utf-8") == said
    assert [other for other in tmp_path.iterdir() if ".prom." in other.name] == []
