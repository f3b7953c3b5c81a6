"""Checkpoints below a URI of any Hadoop file system, through the file manager that Spark writes its own with."""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from stream_processor.errors import CheckpointsUnusableError
from stream_processor.operation.checkpoint_lease import Lease


class HadoopCheckpoints:
    """See Checkpoints. A lease takes the place of the lock that such file systems do not have."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        """Makes the directory if need be. Raises CheckpointsUnusableError."""
        self._uri = uri.rstrip("/")
        self._jvm = cast(Any, spark._jvm)
        self._lease = Lease(self, self._uri)
        with self._told():
            configuration = cast(Any, spark)._jsparkSession.sessionState().newHadoopConf()
            manager = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
            self._files = manager.create(self._path(""), configuration)
            self._files.mkdirs(self._path(""))

    def location(self, query: str) -> str:
        """See Checkpoints."""
        return f"{self._uri}/{query}"

    def exists(self, query: str) -> bool:
        """See Checkpoints."""
        with self._told():
            return bool(self._files.exists(self._path(query)))

    def read(self, name: str) -> dict[str, Any] | None:
        """See Notes."""
        with self._told():
            if not self._files.exists(self._path(name)):
                return None
            stream = self._files.open(self._path(name))
            try:
                return cast(dict[str, Any], json.loads(stream.readAllBytes()))
            finally:
                stream.close()

    def replace(self, name: str, content: Mapping[str, object]) -> None:
        """See Notes."""
        with self._told():
            stream = self._files.createAtomic(self._path(name), True)
            try:
                stream.write(bytearray(json.dumps(content, indent=2).encode() + b"\n"))
            except Py4JError:
                stream.cancel()
                raise
            stream.close()

    def hold(self) -> AbstractContextManager[None]:
        """See Checkpoints."""
        return self._lease.hold()

    def check(self) -> None:
        """See Checkpoints."""
        self._lease.check()

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.location(name))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raises CheckpointsUnusableError for whatever the JVM says, and for a JVM that has gone."""
        try:
            yield
        except Py4JJavaError as error:
            raise self._unusable(str(error.java_exception)) from error
        except (Py4JError, PySparkException, OSError) as error:
            raise self._unusable(str(error)) from error

    def _unusable(self, reason: str) -> CheckpointsUnusableError:
        return CheckpointsUnusableError(f"cannot use {self._uri}: {reason.partition(chr(10))[0]}")
