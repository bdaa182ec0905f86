/* The L2/L3 switch of the PERC thesis' figure 6.3, from what section 6.2.1 says of it: unicast and multicast routing,
 * layer 2 forwarding and learning, IGMP snooping and a small access list. The figure itself gives 2000 entries of unicast
 * routing; the other sizes are of the same kind.
 */
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header vlan_t {
    bit<3> priority;
    bit<1> drop_eligible;
    bit<12> id;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> words;
    bit<8> service;
    bit<16> bytes;
    bit<16> identification;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t vlan;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<9> learn_port;
    bit<16> group;
}

parser L2L3Parser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x8100: vlan;
            default: accept;
        }
    }
    state vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control L2L3(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // Learning: an unknown source, or one on another port, is told to the control plane.
    action learn(bit<9> port) {
        meta.learn_port = port;
    }
    table source_mac {
        key = { hdr.ethernet.src: exact; hdr.vlan.id: exact; standard.ingress_port: exact; }
        actions = { learn; NoAction; }
        size = 4000;
    }

    // Frames to the router's own address are routed.
    table routable {
        key = { hdr.ethernet.dst: exact; hdr.vlan.id: exact; hdr.ethernet.type: exact; }
        actions = { NoAction; }
        size = 64;
    }
    action route(bit<48> dst, bit<48> src, bit<12> id) {
        hdr.ethernet.dst = dst;
        hdr.ethernet.src = src;
        hdr.vlan.id = id;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    table unicast_routing {
        key = { hdr.ipv4.dst: lpm; }
        actions = { route; NoAction; }
        size = 2000;
    }
    action replicate(bit<16> group) {
        meta.group = group;
    }
    table multicast_routing {
        key = { hdr.ipv4.dst: exact; hdr.ipv4.src: exact; hdr.vlan.id: exact; }
        actions = { replicate; NoAction; }
        size = 1000;
    }
    action snoop(bit<16> group) {
        standard.mcast_grp = group;
    }
    table igmp {
        key = { hdr.ipv4.dst: exact; hdr.vlan.id: exact; standard.ingress_port: exact; }
        actions = { snoop; NoAction; }
        size = 1000;
    }

    action send(bit<9> port) {
        standard.egress_spec = port;
    }
    table switching {
        key = { hdr.ethernet.dst: exact; hdr.vlan.id: exact; }
        actions = { send; NoAction; }
        size = 4000;
    }
    action deny() {
        mark_to_drop(standard);
    }
    table access_list {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            standard.ingress_port: ternary;
        }
        actions = { deny; NoAction; }
        size = 1000;
    }

    apply {
        source_mac.apply();
        if (routable.apply().hit) {
            unicast_routing.apply();
        } else {
            multicast_routing.apply();
            igmp.apply();
        }
        switching.apply();
        access_list.apply();
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control L2L3Deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(L2L3Parser(), NoChecksum(), L2L3(), NoEgress(), NoChecksum(), L2L3Deparser()) main;
