"""The benchmarks of Statecast: each suite measures the real stack and writes bench/results/<suite>.json."""
