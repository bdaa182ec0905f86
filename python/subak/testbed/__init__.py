"""A network as namespaces of this machine: hosts, routers, veths and shaped queues, and real traffic over them."""
