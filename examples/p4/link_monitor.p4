// Link monitoring: probes gather the bytes that each port has sent, and when it was last asked.
#include "common.p4"

#define MOST_PORTS 8
const bit<16> TYPE_PROBE = 0x0812;
header probe_t { bit<8> hops; }
header report_t { bit<1> last; bit<7> switch_id; bit<8> port; bit<32> bytes; bit<48> before; bit<48> now; }
header steer_t { bit<8> port; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; probe_t probe; report_t[10] reports; steer_t[10] steers; }
struct meta_t { bit<8> egress; bit<8> left; }

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_IPV4: ipv4; TYPE_PROBE: probe; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
    state probe {
        packet.extract(hdr.probe);
        meta.left = hdr.probe.hops + 1;
        transition select(hdr.probe.hops) { 0: steer; default: report; }
    }
    state report {
        packet.extract(hdr.reports.next);
        transition select(hdr.reports.last.last) { 1: steer; default: report; }
    }
    state steer {
        packet.extract(hdr.steers.next);
        meta.left = meta.left - 1;
        meta.egress = hdr.steers.last.port;
        transition select(meta.left) { 0: accept; default: steer; }
    }
}
CHECKSUMS(headers_t, meta_t)

control Ingress(PIPELINE(headers_t, meta_t)) {
    action drop() { DROP(std); }
    ROUTE(route, 1024)
    apply {
        if (hdr.ipv4.isValid()) {
            route.apply();
        } else if (hdr.probe.isValid()) {
            std.egress_spec = (port_t)meta.egress;
            hdr.probe.hops = hdr.probe.hops + 1;
        }
    }
}

control Egress(PIPELINE(headers_t, meta_t)) {
    register<bit<32>>(MOST_PORTS) sent;
    register<bit<48>>(MOST_PORTS) asked;
    bit<32> bytes;
    bit<48> before;
    action number(bit<7> id) { hdr.reports[0].switch_id = id; }
    table own_number { actions = { number; NoAction; } default_action = NoAction(); }
    action count() {
        sent.read(bytes, (bit<32>)std.egress_port);
        bytes = bytes + std.packet_length;
        sent.write((bit<32>)std.egress_port, hdr.probe.isValid() ? 32w0 : bytes);
    }
    action stamp() {
        asked.read(before, (bit<32>)std.egress_port);
        asked.write((bit<32>)std.egress_port, std.egress_global_timestamp);
    }
    apply {
        count();
        if (hdr.probe.isValid()) {
            hdr.reports.push_front(1);
            hdr.reports[0].setValid();
            if (hdr.probe.hops == 1) { hdr.reports[0].last = 1; } else { hdr.reports[0].last = 0; }
            own_number.apply();
            stamp();
            hdr.reports[0].port = (bit<8>)std.egress_port;
            hdr.reports[0].bytes = bytes;
            hdr.reports[0].before = before;
            hdr.reports[0].now = std.egress_global_timestamp;
        }
    }
}
control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); packet.emit(hdr.probe);
        packet.emit(hdr.reports); packet.emit(hdr.steers);
    }
}
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
