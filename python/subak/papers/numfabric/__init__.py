"""Experiments of NUMFabric (fast and flexible bandwidth allocation in datacenters)."""
