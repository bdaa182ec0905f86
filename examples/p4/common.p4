// What the examples share: headers of Ethernet and IPv4, their checksum, and the end of a v1model program.
#ifndef COMMON_P4
#define COMMON_P4

#include <core.p4>
#include <v1model.p4>

#define TYPE_IPV4 0x0800
#define DROP(std) mark_to_drop(std)

typedef bit<48> mac_t;
typedef bit<32> ip_t;
typedef bit<9> port_t;

header ethernet_t { mac_t dst; mac_t src; bit<16> type; }

header ipv4_t {
    bit<4> version; bit<4> ihl; bit<6> dscp; bit<2> ecn; bit<16> length;
    bit<16> id; bit<3> flags; bit<13> fragment;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    ip_t src; ip_t dst;
}

header tcp_t {
    bit<16> src_port; bit<16> dst_port; bit<32> seq; bit<32> ack;
    bit<4> offset; bit<4> reserved; bit<1> cwr; bit<1> ece; bit<1> urg; bit<1> ack_flag;
    bit<1> psh; bit<1> rst; bit<1> syn; bit<1> fin; bit<16> window; bit<16> checksum; bit<16> urgent;
}

#define CHECKSUM_OF(ip) { ip.version, ip.ihl, ip.dscp, ip.ecn, ip.length, ip.id, ip.flags, ip.fragment, \
    ip.ttl, ip.protocol, ip.src, ip.dst }

#define CHECKSUMS(headers, metadata) \
control Verify(inout headers hdr, inout metadata meta) { \
    apply { verify_checksum(hdr.ipv4.isValid(), CHECKSUM_OF(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16); } } \
control Compute(inout headers hdr, inout metadata meta) { \
    apply { update_checksum(hdr.ipv4.isValid(), CHECKSUM_OF(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16); } }

#define PIPELINE(headers, metadata) inout headers hdr, inout metadata meta, inout standard_metadata_t std

// Plain routing: the port and the next hop's address by the longest prefix, one hop less to live.
#define ROUTE(name, entries) \
    action name##_to(mac_t next, port_t port) { \
        std.egress_spec = port; hdr.ethernet.src = hdr.ethernet.dst; hdr.ethernet.dst = next; \
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1; } \
    table name { \
        key = { hdr.ipv4.dst: lpm; } \
        actions = { name##_to; drop; NoAction; } \
        size = entries; \
        default_action = drop(); }

#endif
