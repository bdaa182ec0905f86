// Load balancing: a hash of the flow chooses one of the next hops to a virtual address.
#include "common.p4"

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; tcp_t tcp; }
struct meta_t { bit<14> member; }

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
    action drop() { DROP(std); }
    action choose(bit<16> first, bit<32> count) {
        hash(meta.member, HashAlgorithm.crc16, first,
            { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.tcp.src_port, hdr.tcp.dst_port }, count);
    }
    table group { key = { hdr.ipv4.dst: lpm; } actions = { choose; drop; } size = 1024; default_action = drop(); }
    action hop(mac_t next, ip_t address, port_t port) {
        hdr.ethernet.dst = next;
        hdr.ipv4.dst = address;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        std.egress_spec = port;
    }
    table member { key = { meta.member: exact; } actions = { hop; drop; } size = 4096; default_action = drop(); }
    apply { if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 0) { group.apply(); member.apply(); } }
}

control Egress(PIPELINE(headers_t, meta_t)) {
    action rewrite(mac_t own) { hdr.ethernet.src = own; }
    table sending { key = { std.egress_port: exact; } actions = { rewrite; NoAction; } size = 256; }
    apply { sending.apply(); }
}
control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); packet.emit(hdr.tcp); }
}
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
