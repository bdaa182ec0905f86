// A calculator: the packet brings two numbers and what to do with them, and goes back with the result.
#include <core.p4>
#include <v1model.p4>

#define TYPE_SUM 0x1234
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
enum bit<8> Does { ADD = 0x2b, TAKE = 0x2d, AND = 0x26, OR = 0x7c, XOR = 0x5e, SHIFT = 0x3c }
header sum_t { Does does; int<32> one; int<32> other; int<32> result; }
struct headers_t { ethernet_t ethernet; sum_t sum; }
struct meta_t { }

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_SUM: sum; default: accept; }
    }
    state sum { packet.extract(hdr.sum); transition accept; }
}
control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }

control Ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action answer(in int<32> result) {
        bit<48> held = hdr.ethernet.dst;
        hdr.sum.result = result;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = held;
        std.egress_spec = std.ingress_port;
    }
    action add() { answer(hdr.sum.one + hdr.sum.other); }
    action take() { answer(hdr.sum.one - hdr.sum.other); }
    action both() { answer(hdr.sum.one & hdr.sum.other); }
    action either() { answer(hdr.sum.one | hdr.sum.other); }
    action one_of() { answer(hdr.sum.one ^ hdr.sum.other); }
    action shift() { answer(hdr.sum.one << (bit<8>)(bit<32>)hdr.sum.other); }
    action drop() { mark_to_drop(std); }
    table calculate {
        key = { hdr.sum.does: exact; }
        actions = { add; take; both; either; one_of; shift; drop; }
        const default_action = drop();
        const entries = {
            Does.ADD: add(); Does.TAKE: take(); Does.AND: both();
            Does.OR: either(); Does.XOR: one_of(); Does.SHIFT: shift();
        }
    }
    apply { if (hdr.sum.isValid()) { calculate.apply(); } else { drop(); } }
}

control Egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); packet.emit(hdr.sum); } }
V1Switch(Parse(), Verify(), Ingress(), Egress(), Compute(), Deparse()) main;
