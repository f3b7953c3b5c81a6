"""A service as a process: here a small program with a status server."""

from pathlib import Path

import psutil
import pytest

from testkit.ports import free_port
from testkit.service_process import ServiceProcess, StatusClient
from testkit.waiting import wait_until

PROGRAM = """
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        ready = os.environ["TOY_SERVICE_READY"] == "yes"
        metrics = "rows_total{store=\\"a\\"} 2\\nrows_total{store=\\"b\\"} 3\\n"
        text = metrics if self.path == "/metrics" else "no broker answers"
        self.send_response(503 if self.path == "/readyz" and not ready else 200)
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *_):
        pass

if sys.argv[1] == "fail":
    sys.exit("it fails")
if sys.argv[1] == "show":
    sys.exit(print(*sys.argv[2:], os.environ["TOY_SERVICE_READY"]))
print("started with", *sys.argv[2:], flush=True)
HTTPServer(("127.0.0.1", int(os.environ["TOY_SERVICE_PORT"])), Handler).serve_forever()
"""


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceProcess:
    (tmp_path / "toy_service.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    port = free_port()
    return ServiceProcess("toy_service", {"port": port, "ready": "yes"}, tmp_path / "log", port, ["file.yaml"])


def test_it_starts_with_its_settings_and_becomes_ready(service: ServiceProcess) -> None:
    with service:
        service.start()
        service.wait_ready()

        assert service.get("/healthz")[0] == 200
        assert service.rss_bytes > 0
        assert service.cpu_s > 0
        assert "started with file.yaml" in service.log
    assert not service.running


def test_it_says_why_it_is_not_ready(service: ServiceProcess) -> None:
    with service:
        service.start(ready="no")
        wait_until(lambda: service.get("/readyz")[0] == 503, "the status server answers")

        with pytest.raises(AssertionError, match="toy_service is not ready: no broker answers"):
            service.assert_ready()


def test_waiting_for_a_service_that_has_ended_fails_at_once(service: ServiceProcess) -> None:
    service.start(port="no number")

    with pytest.raises(AssertionError, match="it has ended with status 1"):
        service.wait_ready(timeout_s=600)


def test_a_metric_is_the_sum_of_its_samples_that_have_the_labels(service: ServiceProcess) -> None:
    with service:
        service.start()
        service.wait_ready()

        assert service.metric("rows_total") == 5
        assert service.metric("rows_total", store="b") == 3
        assert service.metric("rows") == 0


def test_it_is_stopped_and_killed_and_starts_again_on_the_same_port(service: ServiceProcess) -> None:
    with service:
        service.start()
        service.wait_ready()
        stopped = service.stop()
        service.start()
        service.wait_ready()
        service.kill()

        assert (stopped, service.exit_status) == (-15, -9)
        assert service.log.count("started") == 2


def test_a_paused_process_continues_when_it_is_resumed(service: ServiceProcess) -> None:
    with service:
        service.start()
        service.wait_ready()
        service.pause()
        wait_until(lambda: psutil.Process(service.pid).status() == psutil.STATUS_STOPPED, "it is frozen")
        service.resume()

        service.wait_ready()


def test_another_command_of_the_program_runs_to_its_end(service: ServiceProcess) -> None:
    assert service.run_command("show", "--all") == "file.yaml --all yes\n"
    with pytest.raises(AssertionError, match="it fails"):
        service.run_command("fail")


def test_nothing_answers_where_nothing_listens() -> None:
    status = StatusClient(f"http://127.0.0.1:{free_port()}")

    assert status.get("/healthz") == (0, "")
    assert "nothing answers" in (status.unready_reason() or "")
    with pytest.raises(OSError, match="refused"):
        status.metric("rows_total")
