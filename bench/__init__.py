"""The benchmarks of Statecast: each suite measures the real stack and writes bench/results/<suite>.json."""

from testkit import processes as processes  # before anything imports gRPC
