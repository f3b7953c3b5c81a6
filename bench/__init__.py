"""The benchmarks of Statecast: each suite measures the real stack and writes bench/results/<suite>.json."""

from local_stack import child_process as child_process  # before anything imports gRPC
