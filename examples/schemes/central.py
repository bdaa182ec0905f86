"""A central controller that gives each flow its max-min fair rate."""

import subak

REPEAT_NS, LEASE_NS = 500_000, 2_000_000


class Central(subak.Scheme):
    """Sources tell a controller their paths, and send at the rates that it returns."""

    goal = "equal-max-min"
    settles = (0.05, 100)
    data_share = 0.9

    def source(self, flow):
        return Sender(flow)

    def controller(self, network):
        return Controller([link.capacity_bps * self.data_share for link in network.links])


class Sender(subak.Source):
    def __init__(self, flow):
        if flow.subflows > 1 or flow.hops > 7:
            raise ValueError("a message has room for one path of seven links")
        self.links, self.is_done = flow.links, False

    def on_start(self, io):
        self.tell(io)

    def on_timer(self, io, timer):
        # The messages may be lost, and the controller may have started again.
        if not self.is_done:
            self.tell(io)

    def tell(self, io):
        io.send([1 + link for link in self.links], to="controller")
        io.timer(0, io.now_ns + REPEAT_NS)

    def on_message(self, io, message, subflow):
        io.pace(rate=message[0])

    def on_reroute(self, io, subflow, path):
        self.links = path.links
        self.tell(io)

    def on_finish(self, io):
        self.is_done = True
        io.send([], to="controller")


class Controller(subak.Controller):
    def __init__(self, capacities):
        self.capacities = dict(enumerate(capacities))
        self.flows, self.heard_ns, self.told = {}, {}, {}

    def on_flow(self, io, flow, message):
        links = [int(number) - 1 for number in message if number > 0]
        if not links:
            self.forget(flow)
        else:
            if self.flows.get(flow) == links and flow in self.told:
                self.told.pop(flow)
            self.flows[flow], self.heard_ns[flow] = links, io.now_ns
        self.divide(io)

    def on_link(self, io, link, capacity_bps):
        self.capacities[link] = capacity_bps * Central.data_share
        self.divide(io)

    def forget(self, flow):
        for known in (self.flows, self.heard_ns, self.told):
            known.pop(flow, None)

    def divide(self, io):
        for flow in [flow for flow, at_ns in self.heard_ns.items() if io.now_ns > at_ns + LEASE_NS]:
            self.forget(flow)
        for flow, rate in max_min(self.flows, self.capacities).items():
            if abs(rate - self.told.get(flow, -1)) > 0.01 * rate:
                self.told[flow] = rate
                io.send([rate], flow=flow)


def max_min(flows, capacities):
    """Max-min fair rates, by filling: the links with the least share are full first."""
    left, waiting, rates = dict(capacities), dict(flows), {}
    while waiting:
        at = {}
        for links in waiting.values():
            for link in links:
                at[link] = at.get(link, 0) + 1
        share, bottleneck = min((left[link] / count, link) for link, count in at.items())
        for flow in [flow for flow, links in waiting.items() if bottleneck in links]:
            rates[flow] = share
            for link in waiting.pop(flow):
                left[link] = max(left[link] - share, 0.0)
    return rates
