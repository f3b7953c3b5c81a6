"""A standalone Spark cluster on this machine: a master and workers, from the installed pyspark."""

from pathlib import Path

import psutil
import pyspark

from testkit import processes
from testkit.stream_processor.process import wait_until

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
ELECTED = "I have been elected leader"
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}
DAEMONS = {
    **LOOPBACK,
    "SPARK_DAEMON_MEMORY": "128m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -Dspark.master.rest.enabled=false",
}
EXECUTOR_MEMORY = "640m"
"""Less than Spark's own 1g, which no worker here has: executors come only to a driver that reads its own settings."""


class Cluster:
    """Listens on 127.0.0.1 only; its logs and its executors' files lie below `directory`."""

    def __init__(self, directory: Path, port: int) -> None:
        self.master = f"spark://127.0.0.1:{port}"
        self._directory = directory
        self._port = port
        self._running: dict[str, processes.Popen] = {}

    def start_master(self) -> None:
        """Returns when the master takes workers."""
        self._run("master", "master.Master", "--port", str(self._port))
        log, process = self._log("master"), self._running["master"]
        wait_until(lambda: ELECTED in log.read_text() or process.poll() is not None, log.read_text)
        if process.poll() is not None:
            raise AssertionError(log.read_text())

    def start_worker(self, name: str, cores: int) -> None:
        """Adds a worker with so many task slots and memory for one executor, without waiting for it."""
        work = str(self._directory / name)
        self._run(
            name, "worker.Worker", "--cores", str(cores), "--memory", EXECUTOR_MEMORY, "--work-dir", work, self.master
        )

    def client_environment(self) -> dict[str, str]:
        """Returns the environment of a driver: its address for executors, and the file of Spark's own settings."""
        directory = self._directory / "spark"
        directory.mkdir(exist_ok=True)
        (directory / "spark-defaults.conf").write_text(f"spark.executor.memory {EXECUTOR_MEMORY}\n")
        return {**LOOPBACK, "SPARK_CONF_DIR": str(directory)}

    def kill_worker(self, name: str) -> None:
        """Kills a worker with SIGKILL and waits until its executors, which notice it themselves, are gone too."""
        executors = self.executors(name)
        process = self._running.pop(name)
        process.kill()
        process.wait()
        wait_until(lambda: not any(each.is_running() for each in executors), lambda: f"{executors} live on")

    def executors(self, name: str) -> list[psutil.Process]:
        """Returns the processes that a worker has started."""
        return psutil.Process(self._running[name].pid).children(recursive=True)

    def close(self) -> None:
        """Kills the remaining processes."""
        for process in self._running.values():
            processes.kill_family(process.pid)
            process.wait()

    def _run(self, name: str, role: str, *arguments: str) -> None:
        where = ["--host", "127.0.0.1", "--webui-port", "0"]
        command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{role}", *where, *arguments]
        self._running[name] = processes.start(command, self._log(name), DAEMONS)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"
