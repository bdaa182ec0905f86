"""NUMFabric: fast and flexible bandwidth allocation in datacenters."""
