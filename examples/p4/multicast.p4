// Multicast on a local network: unknown addresses go to all ports but the one they came from.
#include "common.p4"

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
    action flood() { std.mcast_grp = 1; }
    action forward(port_t port) { std.egress_spec = port; }
    table address {
        key = { hdr.ethernet.dst: exact; }
        actions = { flood; forward; drop; }
        size = 1024;
        default_action = flood;
    }
    apply { if (hdr.ethernet.isValid()) { address.apply(); } }
}

control Egress(PIPELINE(headers_t, meta_t)) {
    action drop() { DROP(std); }
    apply { if (std.egress_port == std.ingress_port) { drop(); } }
}
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); } }
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
