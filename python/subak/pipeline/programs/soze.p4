/* Soze at a switch (Soze, section 4), after L2 forwarding: each data packet carries the largest queueing delay of the
 * links on its way.
 *
 * The signal is each packet's own queueing delay, in ns. The paper's low-pass filter is an extern of Tofino that
 * v1model does not have: where there is one, `deq_timedelta` is its result.
 *
 * The field's unit is 2^shift ns, the same at all switches; half a unit is added to round to the nearest.
 */
#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_SOZE = 0x88b6;
const bit<8> DATA = 0;                      // an ACK carries back what the receiver got
const bit<16> MOST = 65535;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header soze_t {
    bit<8> kind;
    bit<8> reserved;
    bit<16> delay;                          // maxQD
}

struct headers_t {
    ethernet_t ethernet;
    soze_t soze;
}

struct metadata_t { }

parser SozeParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_SOZE: soze;
            default: accept;
        }
    }
    state soze {
        packet.extract(hdr.soze);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SozeIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action forward(bit<9> port) {
        standard.egress_spec = port;
    }
    action drop() {
        mark_to_drop(standard);
    }
    table dmac {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 16384;
    }

    apply {
        dmac.apply();
    }
}

control SozeEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action stamp(bit<33> half, bit<8> shift) {
        bit<33> delay = ((bit<33>)standard.deq_timedelta + half) >> shift;
        bit<16> told = (delay > 65535) ? MOST : delay[15:0];
        hdr.soze.delay = (told > hdr.soze.delay) ? told : hdr.soze.delay;
    }
    table telemetry {
        key = { hdr.soze.isValid(): exact; hdr.soze.kind: exact; }
        actions = { stamp; NoAction; }
        size = 2;
    }

    apply {
        telemetry.apply();
    }
}

control SozeDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.soze);
    }
}

V1Switch(SozeParser(), NoChecksum(), SozeIngress(), SozeEgress(), NoChecksum(), SozeDeparser()) main;
