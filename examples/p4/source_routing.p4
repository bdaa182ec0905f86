// Source routing: the packet brings a stack of ports, and each switch takes the first.
#include "common.p4"

const bit<16> TYPE_ROUTE = 0x1234;
header hop_t { bit<1> last; bit<15> port; }
struct headers_t { ethernet_t ethernet; hop_t[9] hops; ipv4_t ipv4; }
struct meta_t { }

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_ROUTE: hop; default: accept; }
    }
    state hop {
        packet.extract(hdr.hops.next);
        transition select(hdr.hops.last.last) { 1: ipv4; default: hop; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}
CHECKSUMS(headers_t, meta_t)

control Ingress(PIPELINE(headers_t, meta_t)) {
    action take() {
        std.egress_spec = (port_t)hdr.hops[0].port;
        hdr.hops.pop_front(1);
    }
    action finish() { hdr.ethernet.type = TYPE_IPV4; }
    action age() { hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
    apply {
        if (hdr.hops[0].isValid()) {
            if (hdr.hops[0].last == 1) { finish(); }
            take();
            if (hdr.ipv4.isValid()) { age(); }
        } else {
            DROP(std);
        }
    }
}

control Egress(PIPELINE(headers_t, meta_t)) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.hops); packet.emit(hdr.ipv4); }
}
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
