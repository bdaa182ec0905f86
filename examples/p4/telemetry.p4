// In-band telemetry: each switch puts its number and the queue that the packet met onto a stack in the packet.
#include "common.p4"

#define MOST_HOPS 8
header count_t { bit<16> hops; }
header hop_t { bit<32> number; bit<32> queue; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; count_t count; hop_t[MOST_HOPS] hops; }
struct meta_t { bit<16> left; }

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) { 253: count; default: accept; }
    }
    state count {
        packet.extract(hdr.count);
        meta.left = hdr.count.hops;
        transition select(meta.left) { 0: accept; default: hop; }
    }
    state hop {
        packet.extract(hdr.hops.next);
        meta.left = meta.left - 1;
        transition select(meta.left) { 0: accept; default: hop; }
    }
}
CHECKSUMS(headers_t, meta_t)

control Ingress(PIPELINE(headers_t, meta_t)) {
    action drop() { DROP(std); }
    ROUTE(route, 1024)
    apply { if (hdr.ipv4.isValid()) { route.apply(); } }
}

control Egress(PIPELINE(headers_t, meta_t)) {
    action add(bit<32> number) {
        hdr.count.hops = hdr.count.hops + 1;
        hdr.hops.push_front(1);
        hdr.hops[0].setValid();
        hdr.hops[0].number = number;
        hdr.hops[0].queue = (bit<32>)std.deq_qdepth;
        hdr.ipv4.length = hdr.ipv4.length + 8;
    }
    table own_number { actions = { add; NoAction; } default_action = NoAction(); }
    apply { if (hdr.count.isValid() && hdr.count.hops < MOST_HOPS) { own_number.apply(); } }
}
control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); packet.emit(hdr.count); packet.emit(hdr.hops); }
}
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
