// Explicit congestion notification: packets that met a long queue are marked.
#include "common.p4"

#define LONG_QUEUE 10
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { }

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}
CHECKSUMS(headers_t, meta_t)

control Ingress(PIPELINE(headers_t, meta_t)) {
    action drop() { DROP(std); }
    ROUTE(route, 1024)
    apply { if (hdr.ipv4.isValid()) { route.apply(); } }
}

control Egress(PIPELINE(headers_t, meta_t)) {
    action mark() { hdr.ipv4.ecn = 3; }
    apply {
        if (hdr.ipv4.ecn == 1 || hdr.ipv4.ecn == 2) {
            if (std.enq_qdepth >= LONG_QUEUE) { mark(); }
        }
    }
}
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); } }
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
