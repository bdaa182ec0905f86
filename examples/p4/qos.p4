// Quality of service: each protocol has its class, a meter colours what exceeds its rate, and red packets are dropped.
#include "common.p4"

#define CLASS(name, value) action name() { hdr.ipv4.dscp = value; std.priority = (bit<3>)(value >> 3); }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { bit<2> colour; }

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}
CHECKSUMS(headers_t, meta_t)

control Police(inout headers_t hdr, inout bit<2> colour, inout standard_metadata_t std) {
    direct_meter<bit<2>>(MeterType.bytes) rate;
    direct_counter(CounterType.packets_and_bytes) counted;
    action colour_it() { rate.read(colour); counted.count(); }
    table policy {
        key = { hdr.ipv4.src: ternary; hdr.ipv4.dscp: exact; }
        actions = { colour_it; NoAction; }
        meters = rate;
        counters = counted;
        size = 512;
    }
    apply {
        policy.apply();
        if (colour == V1MODEL_METER_COLOR_RED) { DROP(std); }
    }
}

control Ingress(PIPELINE(headers_t, meta_t)) {
    Police() police;
    action drop() { DROP(std); }
    ROUTE(route, 1024)
    CLASS(plain, 6w0)
    CLASS(expedited, 6w46)
    CLASS(voice, 6w44)
    apply {
        if (hdr.ipv4.isValid()) {
            switch (hdr.ipv4.protocol) {
                17: { expedited(); }
                6: { voice(); }
                default: { plain(); }
            }
            route.apply();
            police.apply(hdr, meta.colour, std);
        }
    }
}

control Egress(PIPELINE(headers_t, meta_t)) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); } }
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
