// A stateful firewall: a Bloom filter of two registers lets packets in that belong to connections begun inside.
#include "common.p4"

#define CELLS 4096
#define FILTER(n, algorithm) register<bit<1>>(CELLS) filter_##n
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; tcp_t tcp; }
struct meta_t { bit<32> one; bit<32> two; bit<1> seen_one; bit<1> seen_two; bit<1> outward; bit<1> known; }

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) { 6: tcp; default: accept; }
    }
    state tcp { packet.extract(hdr.tcp); transition accept; }
}
CHECKSUMS(headers_t, meta_t)

control Ingress(PIPELINE(headers_t, meta_t)) {
    FILTER(one, crc16);
    FILTER(two, crc32);
    action drop() { DROP(std); }
    ROUTE(route, 1024)
    action place(ip_t a, ip_t b, bit<16> p, bit<16> q) {
        hash(meta.one, HashAlgorithm.crc16, 32w0, { a, b, p, q, hdr.ipv4.protocol }, 32w4096);
        hash(meta.two, HashAlgorithm.crc32, 32w0, { a, b, p, q, hdr.ipv4.protocol }, 32w4096);
    }
    action direct(bit<1> outward) { meta.outward = outward; meta.known = 1; }
    table direction {
        key = { std.ingress_port: exact; std.egress_spec: exact; }
        actions = { direct; NoAction; }
        size = 1024;
    }
    // One register lies in one place: reading and setting it is one step.
    action use_one() {
        filter_one.read(meta.seen_one, meta.one);
        if (meta.outward == 1 && hdr.tcp.syn == 1) { filter_one.write(meta.one, 1); }
    }
    action use_two() {
        filter_two.read(meta.seen_two, meta.two);
        if (meta.outward == 1 && hdr.tcp.syn == 1) { filter_two.write(meta.two, 1); }
    }
    apply {
        if (hdr.ipv4.isValid()) {
            route.apply();
            if (hdr.tcp.isValid()) {
                direction.apply();
                if (meta.known == 1) {
                    if (meta.outward == 1) {
                        place(hdr.ipv4.src, hdr.ipv4.dst, hdr.tcp.src_port, hdr.tcp.dst_port);
                    } else {
                        place(hdr.ipv4.dst, hdr.ipv4.src, hdr.tcp.dst_port, hdr.tcp.src_port);
                    }
                    use_one();
                    use_two();
                    if (meta.outward == 0 && (meta.seen_one & meta.seen_two) == 0) { drop(); }
                }
            }
        }
    }
}

control Egress(PIPELINE(headers_t, meta_t)) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); packet.emit(hdr.tcp); }
}
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
