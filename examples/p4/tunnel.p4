// A tunnel: packets get a header with the tunnel's number where they enter, are switched by it, and lose it at the end.
#include "common.p4"

const bit<16> TYPE_TUNNEL = 0x1212;
header tunnel_t { bit<16> inner_type; bit<16> id; }
struct headers_t { ethernet_t ethernet; tunnel_t tunnel; ipv4_t ipv4; }
struct meta_t { }

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_TUNNEL: tunnel; TYPE_IPV4: ipv4; default: accept; }
    }
    state tunnel {
        packet.extract(hdr.tunnel);
        transition select(hdr.tunnel.inner_type) { TYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}
CHECKSUMS(headers_t, meta_t)

control Ingress(PIPELINE(headers_t, meta_t)) {
    counter(4096, CounterType.packets_and_bytes) entered;
    counter(4096, CounterType.packets_and_bytes) left;
    action drop() { DROP(std); }
    ROUTE(route, 1024)
    action enter(bit<16> id) {
        hdr.tunnel.setValid();
        hdr.tunnel.id = id;
        hdr.tunnel.inner_type = hdr.ethernet.type;
        hdr.ethernet.type = TYPE_TUNNEL;
        entered.count((bit<32>)id);
    }
    table entry {
        key = { hdr.ipv4.dst: lpm; }
        actions = { enter; NoAction; }
        default_action = NoAction();
    }
    action forward(port_t port) { std.egress_spec = port; }
    action leave(mac_t to, port_t port) {
        std.egress_spec = port;
        hdr.ethernet.dst = to;
        hdr.ethernet.type = hdr.tunnel.inner_type;
        hdr.tunnel.setInvalid();
        left.count((bit<32>)hdr.tunnel.id);
    }
    table switching {
        key = { hdr.tunnel.id: exact; }
        actions = { forward; leave; drop; }
        size = 4096;
        default_action = drop();
    }
    apply {
        if (hdr.ipv4.isValid() && !hdr.tunnel.isValid()) {
            if (!entry.apply().hit) { route.apply(); }
        }
        if (hdr.tunnel.isValid()) { switching.apply(); }
    }
}

control Egress(PIPELINE(headers_t, meta_t)) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.tunnel); packet.emit(hdr.ipv4); }
}
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
