"""A network of namespaces on this machine: hosts, routers, veths and shaped queues, with real traffic."""
