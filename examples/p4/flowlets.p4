// Flowlets: after a pause a flow may take another path; when it was last seen and which path it has lie in registers.
#include "common.p4"

#define PAUSE 48w200000
#define FLOWS 65536
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; tcp_t tcp; }
struct meta_t { bit<16> flow; bit<48> last; bit<16> flowlet; bool fresh; bit<14> path; }

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
    register<bit<48>>(FLOWS) seen;
    register<bit<16>>(FLOWS) flowlets;
    action drop() { DROP(std); }
    action know() {
        hash(meta.flow, HashAlgorithm.crc16, 16w0,
            { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.tcp.src_port, hdr.tcp.dst_port }, 32w65536);
    }
    action look() {
        seen.read(meta.last, (bit<32>)meta.flow);
        seen.write((bit<32>)meta.flow, std.ingress_global_timestamp);
        meta.fresh = std.ingress_global_timestamp - meta.last > PAUSE;
    }
    action follow() {
        flowlets.read(meta.flowlet, (bit<32>)meta.flow);
        if (meta.fresh) {
            random(meta.flowlet, 16w0, 16w0xffff);
            flowlets.write((bit<32>)meta.flow, meta.flowlet);
        }
    }
    action choose(bit<14> first, bit<32> count) {
        hash(meta.path, HashAlgorithm.crc16, first, { hdr.ipv4.src, hdr.ipv4.dst, meta.flowlet }, count);
    }
    table group { key = { hdr.ipv4.dst: lpm; } actions = { choose; drop; } size = 1024; default_action = drop(); }
    action hop(mac_t next, port_t port) {
        hdr.ethernet.dst = next;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        std.egress_spec = port;
    }
    table path { key = { meta.path: exact; } actions = { hop; drop; } size = 16384; default_action = drop(); }
    apply {
        if (hdr.ipv4.isValid() && hdr.tcp.isValid()) {
            know();
            look();
            follow();
            group.apply();
            path.apply();
        }
    }
}

control Egress(PIPELINE(headers_t, meta_t)) {
    action rewrite(mac_t own) { hdr.ethernet.src = own; }
    action drop() { DROP(std); }
    table sending { key = { std.egress_port: exact; } actions = { rewrite; drop; } size = 256; default_action = drop(); }
    apply { sending.apply(); }
}
control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); packet.emit(hdr.tcp); }
}
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
