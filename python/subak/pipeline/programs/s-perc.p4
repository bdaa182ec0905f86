/* s-PERC at a switch (PERC thesis, Algorithms 5 and 6), after L2 forwarding.
 *
 * A control packet carries for each of at most four links on its way what table 3.2 has: allocation a, bottleneck rate b,
 * state s (1: bottlenecked here) and ignore bit i. The link that a packet leaves by does Algorithm 6 on it; a packet of
 * kind ROUND, made by the switch's own timer, does Algorithm 5. State lies in registers, one cell a port; it is read and
 * written in two steps, each within one table: SumE and NumB by `link_state`, MaxE and MaxE' by `propagation`.
 *
 * b = (C - SumE) / NumB is 2^(log2 (C - SumE) - log2 NumB): a ternary match finds the leading one of each number, the
 * eight bits behind it address a table of logarithms, and eight bits of the fraction of the difference one of powers.
 * b <= e and b < MaxE are decided by multiplication (section 4.1), with rates that differ by less than the tables err
 * counted as equal: 3/512 is the error of tables of 256 entries.
 */
#include <core.p4>
#include <v1model.p4>

typedef bit<96> rate_t;                     // in 2^-50 bit/s: no quotient of the tables is rounded
const rate_t NO_LIMIT = 0xffffffffffffffffffffffff;
const bit<16> TYPE_PERC = 0x88b5;
const bit<8> UPDATE = 0;
const bit<8> ROUND = 1;
const bit<160> ONE = 512;                   // what rates are compared in: 1, 1 + 3/512, 1 - 3/512
const bit<160> ABOVE = 515;
const bit<160> BELOW = 509;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header perc_t {
    bit<8> kind;
    bit<8> hop;                             // the place of this link on the packet's way
    bit<1> leaving;
    bit<7> reserved;
}

header link_t {
    rate_t a;
    rate_t b;
    bit<1> s;
    bit<1> i;
    bit<6> reserved;
}

struct headers_t {
    ethernet_t ethernet;
    perc_t perc;
    link_t l0;
    link_t l1;
    link_t l2;
    link_t l3;
}

struct metadata_t {
    rate_t old_a;
    bit<1> old_s;
    rate_t e0;
    rate_t e1;
    rate_t e2;
    rate_t e3;
    rate_t e01;
    rate_t e23;
    rate_t e;
    rate_t capacity;
    rate_t rest;                            // C - SumE
    bit<32> count;                          // NumB
    bit<40> rest_bps;
    bit<1> s;
    bit<1> i;
    bit<6> rest_exponent;
    bit<8> rest_index;
    bit<26> rest_log;
    bit<6> count_exponent;
    bit<8> count_index;
    bit<26> count_log;
    bit<33> log;
    bit<7> whole;
    bit<8> fraction;
    bit<31> power;
    rate_t b;
    rate_t a;
}

parser PercParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_PERC: perc;
            default: accept;
        }
    }
    state perc {
        packet.extract(hdr.perc);
        packet.extract(hdr.l0);
        packet.extract(hdr.l1);
        packet.extract(hdr.l2);
        packet.extract(hdr.l3);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PercIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
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

    action low() {
        standard.priority = 0;
    }
    action high() {
        standard.priority = 7;
    }
    table priority {
        key = { hdr.perc.isValid(): exact; }
        actions = { low; high; }
        default_action = low();
        size = 2;
    }

    apply {
        dmac.apply();
        priority.apply();
    }
}

control PercEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<rate_t>(64) sum_e;
    register<bit<32>>(64) num_b;
    register<rate_t>(64) max_e;
    register<rate_t>(64) max_e_next;

    action has(rate_t rate) {
        meta.capacity = rate;
    }
    table capacity {
        key = { standard.egress_port: exact; }
        actions = { has; }
        default_action = has(0);
        size = 64;
    }

    // What the packet carries for this link, and what the others let the flow have (line 9).
    action first() {
        meta.old_a = hdr.l0.a;
        meta.old_s = hdr.l0.s;
        meta.e0 = NO_LIMIT;
        meta.e1 = (hdr.l1.i == 1) ? NO_LIMIT : hdr.l1.b;
        meta.e2 = (hdr.l2.i == 1) ? NO_LIMIT : hdr.l2.b;
        meta.e3 = (hdr.l3.i == 1) ? NO_LIMIT : hdr.l3.b;
    }
    action second() {
        meta.old_a = hdr.l1.a;
        meta.old_s = hdr.l1.s;
        meta.e0 = (hdr.l0.i == 1) ? NO_LIMIT : hdr.l0.b;
        meta.e1 = NO_LIMIT;
        meta.e2 = (hdr.l2.i == 1) ? NO_LIMIT : hdr.l2.b;
        meta.e3 = (hdr.l3.i == 1) ? NO_LIMIT : hdr.l3.b;
    }
    action third() {
        meta.old_a = hdr.l2.a;
        meta.old_s = hdr.l2.s;
        meta.e0 = (hdr.l0.i == 1) ? NO_LIMIT : hdr.l0.b;
        meta.e1 = (hdr.l1.i == 1) ? NO_LIMIT : hdr.l1.b;
        meta.e2 = NO_LIMIT;
        meta.e3 = (hdr.l3.i == 1) ? NO_LIMIT : hdr.l3.b;
    }
    action fourth() {
        meta.old_a = hdr.l3.a;
        meta.old_s = hdr.l3.s;
        meta.e0 = (hdr.l0.i == 1) ? NO_LIMIT : hdr.l0.b;
        meta.e1 = (hdr.l1.i == 1) ? NO_LIMIT : hdr.l1.b;
        meta.e2 = (hdr.l2.i == 1) ? NO_LIMIT : hdr.l2.b;
        meta.e3 = NO_LIMIT;
    }
    table own_field {
        key = { hdr.perc.hop: exact; }
        actions = { first; second; third; fourth; }
        default_action = first();
        const entries = {
            0: first();
            1: second();
            2: third();
            3: fourth();
        }
    }
    action least_of_pairs() {
        meta.e01 = (meta.e0 < meta.e1) ? meta.e0 : meta.e1;
        meta.e23 = (meta.e2 < meta.e3) ? meta.e2 : meta.e3;
    }
    action least() {
        meta.e = (meta.e01 < meta.e23) ? meta.e01 : meta.e23;
    }

    // Lines 5-8, 11-12 and 16-20: SumE and NumB. A flow that counts as bottlenecked elsewhere is given e.
    action update_state() {
        rate_t sum;
        bit<32> count;
        sum_e.read(sum, (bit<32>)standard.egress_port);
        num_b.read(count, (bit<32>)standard.egress_port);
        if (meta.old_s == 0) {
            sum = sum - meta.old_a;
            count = count + 1;
        }
        meta.rest = meta.capacity - sum;
        // Sums go below nothing only where packets were lost.
        if (meta.rest[95:95] == 1) {
            meta.rest = 0;
        }
        meta.count = count;
        if (count == 0 || count[31:31] == 1) {
            meta.count = 1;
        }
        meta.s = 1;
        if (meta.e != NO_LIMIT && (bit<160>)meta.rest * ONE > (bit<160>)meta.e * (bit<160>)meta.count * ABOVE) {
            meta.s = 0;
        }
        if (hdr.perc.leaving == 1) {
            count = count - 1;
        } else if (meta.s == 0) {
            count = count - 1;
            sum = sum + meta.e;
        }
        meta.rest_bps = meta.rest[89:50];
        if (meta.rest_bps == 0) {
            meta.rest_bps = 1;
        }
        sum_e.write((bit<32>)standard.egress_port, sum);
        num_b.write((bit<32>)standard.egress_port, count);
    }
    table link_state {
        key = { hdr.perc.kind: exact; }
        actions = { update_state; NoAction; }
        const entries = {
            UPDATE: update_state();
        }
    }

    // Lines 14-15 and 21-22: MaxE and MaxE'; and Algorithm 5.
    action update_bound() {
        rate_t now;
        rate_t next;
        max_e.read(now, (bit<32>)standard.egress_port);
        max_e_next.read(next, (bit<32>)standard.egress_port);
        meta.i = 0;
        if ((bit<160>)meta.rest * ONE < (bit<160>)now * (bit<160>)meta.count * BELOW) {
            meta.i = 1;
        }
        if (hdr.perc.leaving == 0 && meta.s == 0) {
            if (meta.e > now) {
                now = meta.e;
            }
            if (meta.e > next) {
                next = meta.e;
            }
        }
        max_e.write((bit<32>)standard.egress_port, now);
        max_e_next.write((bit<32>)standard.egress_port, next);
    }
    action new_round() {
        rate_t next;
        max_e_next.read(next, (bit<32>)standard.egress_port);
        max_e.write((bit<32>)standard.egress_port, next);
        max_e_next.write((bit<32>)standard.egress_port, 0);
    }
    table propagation {
        key = { hdr.perc.kind: exact; }
        actions = { update_bound; new_round; NoAction; }
        const entries = {
            UPDATE: update_bound();
            ROUND: new_round();
        }
    }

    // Line 8: the division.
    action rest_leads(bit<6> exponent, bit<6> up) {
        meta.rest_exponent = exponent;
        meta.rest_index = (bit<8>)((meta.rest_bps << up) >> 31);
    }
    table rest_leading_one {
        key = { meta.rest_bps: ternary; }
        actions = { rest_leads; NoAction; }
        size = 40;
    }
    action count_leads(bit<6> exponent, bit<6> up) {
        meta.count_exponent = exponent;
        meta.count_index = (bit<8>)((meta.count << up) >> 23);
    }
    table count_leading_one {
        key = { meta.count: ternary; }
        actions = { count_leads; NoAction; }
        size = 32;
    }
    action has_rest_log(bit<26> log) {
        meta.rest_log = log;
    }
    table rest_logarithm {
        key = { meta.rest_index: exact; }
        actions = { has_rest_log; NoAction; }
        size = 256;
    }
    action has_count_log(bit<26> log) {
        meta.count_log = log;
    }
    table count_logarithm {
        key = { meta.count_index: exact; }
        actions = { has_count_log; NoAction; }
        size = 256;
    }
    action subtract() {
        meta.log = (1w0 ++ meta.rest_exponent ++ meta.rest_log) - (1w0 ++ meta.count_exponent ++ meta.count_log);
        meta.whole = meta.log[32:26];
        meta.fraction = meta.log[25:18];
    }
    action has_power(bit<31> power) {
        meta.power = power;
    }
    table power {
        key = { meta.fraction: exact; }
        actions = { has_power; NoAction; }
        size = 256;
    }
    action quotient() {
        meta.b = (rate_t)meta.power << (bit<8>)(meta.whole + 20);
    }

    // Lines 10 and 13.
    action allocate() {
        meta.a = (meta.s == 1 && meta.b < meta.e) ? meta.b : meta.e;
    }
    action store_first() {
        hdr.l0.a = meta.a;
        hdr.l0.b = meta.b;
        hdr.l0.s = meta.s;
        hdr.l0.i = meta.i;
    }
    action store_second() {
        hdr.l1.a = meta.a;
        hdr.l1.b = meta.b;
        hdr.l1.s = meta.s;
        hdr.l1.i = meta.i;
    }
    action store_third() {
        hdr.l2.a = meta.a;
        hdr.l2.b = meta.b;
        hdr.l2.s = meta.s;
        hdr.l2.i = meta.i;
    }
    action store_fourth() {
        hdr.l3.a = meta.a;
        hdr.l3.b = meta.b;
        hdr.l3.s = meta.s;
        hdr.l3.i = meta.i;
    }
    // Two tables, as a stage modifies eight fields at most.
    table store_near {
        key = { hdr.perc.hop: exact; }
        actions = { store_first; store_second; NoAction; }
        const entries = {
            0: store_first();
            1: store_second();
        }
    }
    table store_far {
        key = { hdr.perc.hop: exact; }
        actions = { store_third; store_fourth; NoAction; }
        const entries = {
            2: store_third();
            3: store_fourth();
        }
    }

    apply {
        if (hdr.perc.isValid()) {
            capacity.apply();
            own_field.apply();
            least_of_pairs();
            least();
            link_state.apply();
            propagation.apply();
            if (hdr.perc.kind == UPDATE) {
                rest_leading_one.apply();
                count_leading_one.apply();
                rest_logarithm.apply();
                count_logarithm.apply();
                subtract();
                power.apply();
                quotient();
                allocate();
                store_near.apply();
                store_far.apply();
            }
        }
    }
}

control PercDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.perc);
        packet.emit(hdr.l0);
        packet.emit(hdr.l1);
        packet.emit(hdr.l2);
        packet.emit(hdr.l3);
    }
}

V1Switch(PercParser(), NoChecksum(), PercIngress(), PercEgress(), NoChecksum(), PercDeparser()) main;
