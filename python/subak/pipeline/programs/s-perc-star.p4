/* s-PERC* at a switch (PERC thesis, section 4.1, Algorithms 8 and 9), after L2 forwarding.
 *
 * As s-perc.p4, and with what recovers from lost control packets: SumE', NumB' and the number of the round in
 * registers, and for each link in the packet the round in which it was counted last. N counts the flows seen in a
 * round. From it comes Tx_ctrl, the least interval between two control packets of a flow.
 *
 * A packet of kind TICK circulates for each link, through a port in loopback. When the link's round is over it becomes
 * one of kind ROUND, which does Algorithm 9 on its next pass and is a tick again. Timestamps are in ns, and a round
 * lasts a power of two of them: how often it is doubled for a period is a ternary match for the period's leading one.
 *
 * State lies in registers, one cell a link, and each is used within one table. The packet has the rate of the virtual
 * link of the flow's remaining bytes. Flows have weight 1, and links update packets on the way to the receiver alone.
 *
 * The division and the comparisons of rates are those of s-perc.p4.
 */
#include <core.p4>
#include <v1model.p4>

typedef bit<96> rate_t;                     // in 2^-50 bit/s: no quotient of the tables is rounded
const rate_t NO_LIMIT = 0xffffffffffffffffffffffff;
const bit<16> TYPE_PERC = 0x88b5;
const bit<16> TYPE_VLAN = 0x8100;
const bit<8> UPDATE = 0;
const bit<8> ROUND = 1;
const bit<8> TICK = 2;
const bit<9> LOOPBACK = 68;
const bit<48> PATIENCE = 100000;            // MaxRound, ns: ten of the network's longest RTT, here 10 us
const bit<160> ONE = 512;                   // what rates are compared in: 1, 1 + 3/512, 1 - 3/512
const bit<160> ABOVE = 515;
const bit<160> BELOW = 509;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header vlan_t {
    bit<3> pcp;                             // what a source sets of a short flow
    bit<1> dei;
    bit<12> vid;
    bit<16> type;
}

header perc_t {
    bit<8> kind;
    bit<8> hop;                             // the place of this link on the packet's way
    bit<16> link;                           // the link of a tick
    bit<1> leaving;
    bit<7> reserved;
    bit<32> period;                         // the longer of RTT and Tx_ctrl on the last trip, ns
    bit<32> tx;                             // Tx_ctrl, ns
    bit<48> round;                          // the longest round of the links, ns
    rate_t own;                             // b[l0], the bytes that remain over an RTT; or NO_LIMIT
}

header link_t {
    rate_t a;
    rate_t b;
    bit<1> s;
    bit<1> i;
    bit<6> reserved;
    bit<8> number;                          // the link's round in which the packet was counted last; 0: in none
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t vlan;
    perc_t perc;
    link_t l0;
    link_t l1;
    link_t l2;
    link_t l3;
}

struct metadata_t {
    bit<32> link;
    rate_t old_a;
    bit<1> old_s;
    bit<8> old_number;
    bit<8> number;                          // of the link's round
    bit<32> flows;                          // N
    bit<32> tx_of_flow;                     // Tx_ctrl for each flow, ns with 16 fractional bits: below 65.5 us
    bit<32> wait;                           // the longest wait of a control packet, ns
    bit<32> longest;
    bit<32> need;                           // the shortest round that will do, less 1 ns
    bit<8> need_exponent;                   // log2 of that round
    bit<48> round;
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
            TYPE_VLAN: vlan;
            default: accept;
        }
    }
    state vlan {
        packet.extract(hdr.vlan);
        transition accept;
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
        meta.link = (bit<32>)port;
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

    action loop() {
        standard.egress_spec = LOOPBACK;
        meta.link = (bit<32>)hdr.perc.link;
    }

    // Control packets go first, then packets of short flows.
    action low() {
        standard.priority = 0;
    }
    action middle() {
        standard.priority = 3;
    }
    action high() {
        standard.priority = 7;
    }
    table priority {
        key = {
            hdr.perc.isValid(): exact;
            hdr.vlan.isValid(): exact;
            hdr.vlan.pcp: ternary;
        }
        actions = { low; middle; high; }
        default_action = low();
        size = 16;
    }

    apply {
        if (hdr.perc.isValid() && hdr.perc.kind != UPDATE) {
            loop();
        } else {
            dmac.apply();
        }
        priority.apply();
    }
}

control PercEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(64) round_number;
    register<bit<32>>(64) flows;
    register<bit<32>>(64) seen;
    register<rate_t>(64) sum_e;
    register<bit<32>>(64) num_b;
    register<rate_t>(64) sum_e_shadow;
    register<bit<32>>(64) num_b_shadow;
    register<rate_t>(64) max_e;
    register<rate_t>(64) max_e_next;
    register<bit<8>>(64) round_exponent;
    register<bit<8>>(64) longest_exponent;
    register<bit<48>>(64) since;
    register<bit<48>>(64) due;

    action has(rate_t rate, bit<32> tx_of_flow, bit<32> wait) {
        meta.capacity = rate;
        meta.tx_of_flow = tx_of_flow;
        meta.wait = wait;
    }
    table capacity {
        key = { meta.link: exact; }
        actions = { has; }
        default_action = has(0, 0, 0);
        size = 64;
    }

    // Line 4 of Algorithm 9: numbers from 1 to 255.
    action this_round() {
        round_number.read(meta.number, meta.link);
    }
    action next_round() {
        bit<8> number;
        round_number.read(number, meta.link);
        number = (number == 255) ? 8w1 : number + 1;
        round_number.write(meta.link, number);
    }
    table rounds {
        key = { hdr.perc.kind: exact; }
        actions = { this_round; next_round; NoAction; }
        const entries = {
            UPDATE: this_round();
            ROUND: next_round();
        }
    }

    // What the packet carries for this link, and what the others let the flow have (line 18). The virtual link stands
    // in the place of this one.
    action first() {
        meta.old_a = hdr.l0.a;
        meta.old_s = hdr.l0.s;
        meta.old_number = hdr.l0.number;
        meta.e0 = hdr.perc.own;
        meta.e1 = (hdr.l1.i == 1) ? NO_LIMIT : hdr.l1.b;
        meta.e2 = (hdr.l2.i == 1) ? NO_LIMIT : hdr.l2.b;
        meta.e3 = (hdr.l3.i == 1) ? NO_LIMIT : hdr.l3.b;
    }
    action second() {
        meta.old_a = hdr.l1.a;
        meta.old_s = hdr.l1.s;
        meta.old_number = hdr.l1.number;
        meta.e0 = (hdr.l0.i == 1) ? NO_LIMIT : hdr.l0.b;
        meta.e1 = hdr.perc.own;
        meta.e2 = (hdr.l2.i == 1) ? NO_LIMIT : hdr.l2.b;
        meta.e3 = (hdr.l3.i == 1) ? NO_LIMIT : hdr.l3.b;
    }
    action third() {
        meta.old_a = hdr.l2.a;
        meta.old_s = hdr.l2.s;
        meta.old_number = hdr.l2.number;
        meta.e0 = (hdr.l0.i == 1) ? NO_LIMIT : hdr.l0.b;
        meta.e1 = (hdr.l1.i == 1) ? NO_LIMIT : hdr.l1.b;
        meta.e2 = hdr.perc.own;
        meta.e3 = (hdr.l3.i == 1) ? NO_LIMIT : hdr.l3.b;
    }
    action fourth() {
        meta.old_a = hdr.l3.a;
        meta.old_s = hdr.l3.s;
        meta.old_number = hdr.l3.number;
        meta.e0 = (hdr.l0.i == 1) ? NO_LIMIT : hdr.l0.b;
        meta.e1 = (hdr.l1.i == 1) ? NO_LIMIT : hdr.l1.b;
        meta.e2 = (hdr.l2.i == 1) ? NO_LIMIT : hdr.l2.b;
        meta.e3 = hdr.perc.own;
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

    // N: a flow is new, or counted in a round before, or has been seen in this one.
    action count_flow() {
        bit<32> of_round;
        flows.read(meta.flows, meta.link);
        seen.read(of_round, meta.link);
        bit<32> all = meta.flows;
        if (meta.old_number != meta.number) {
            of_round = of_round + 1;
            if (meta.old_number == 0) {
                all = all + 1;
            }
        }
        if (hdr.perc.leaving == 1) {
            of_round = of_round |-| 1;
            all = all |-| 1;
        }
        flows.write(meta.link, all);
        seen.write(meta.link, of_round);
    }
    action count_anew() {
        bit<32> of_round;
        seen.read(of_round, meta.link);
        flows.write(meta.link, of_round);
        seen.write(meta.link, 0);
    }
    table flow_count {
        key = { hdr.perc.kind: exact; }
        actions = { count_flow; count_anew; NoAction; }
        const entries = {
            UPDATE: count_flow();
            ROUND: count_anew();
        }
    }

    // Lines 8-16, 20-21, 25-30 and 33-34: SumE, NumB and their shadows. A flow bottlenecked elsewhere is given e.
    action update_state() {
        rate_t sum;
        bit<32> count;
        rate_t sum_shadow;
        bit<32> count_shadow;
        sum_e.read(sum, meta.link);
        num_b.read(count, meta.link);
        sum_e_shadow.read(sum_shadow, meta.link);
        num_b_shadow.read(count_shadow, meta.link);
        if (meta.old_s == 0) {
            sum = sum - meta.old_a;
            count = count + 1;
        }
        if (meta.old_number != meta.number) {
            count_shadow = count_shadow + 1;
        } else if (meta.old_s == 0) {
            sum_shadow = sum_shadow - meta.old_a;
            count_shadow = count_shadow + 1;
        }
        meta.rest = meta.capacity - sum;
        // Sums are wrong until the end of the second round after a loss.
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
            count_shadow = count_shadow - 1;
        } else if (meta.s == 0) {
            count = count - 1;
            sum = sum + meta.e;
            count_shadow = count_shadow - 1;
            sum_shadow = sum_shadow + meta.e;
        }
        // While SumE is below 0 the rest may exceed 40 bits.
        meta.rest_bps = (meta.rest[95:90] == 0) ? meta.rest[89:50] : 40w0xffffffffff;
        if (meta.rest_bps == 0) {
            meta.rest_bps = 1;
        }
        sum_e.write(meta.link, sum);
        num_b.write(meta.link, count);
        sum_e_shadow.write(meta.link, sum_shadow);
        num_b_shadow.write(meta.link, count_shadow);
    }
    // Lines 2 and 3 of Algorithm 9.
    action adopt_shadow() {
        rate_t sum;
        bit<32> count;
        sum_e_shadow.read(sum, meta.link);
        num_b_shadow.read(count, meta.link);
        sum_e.write(meta.link, sum);
        num_b.write(meta.link, count);
        sum_e_shadow.write(meta.link, 0);
        num_b_shadow.write(meta.link, 0);
    }
    table link_state {
        key = { hdr.perc.kind: exact; }
        actions = { update_state; adopt_shadow; NoAction; }
        const entries = {
            UPDATE: update_state();
            ROUND: adopt_shadow();
        }
    }

    // Lines 23-24 and 31-32: MaxE and MaxE'; and line 1 of Algorithm 9.
    action update_bound() {
        rate_t now;
        rate_t next;
        max_e.read(now, meta.link);
        max_e_next.read(next, meta.link);
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
        max_e.write(meta.link, now);
        max_e_next.write(meta.link, next);
    }
    action new_round() {
        rate_t next;
        max_e_next.read(next, meta.link);
        max_e.write(meta.link, next);
        max_e_next.write(meta.link, 0);
    }
    table propagation {
        key = { hdr.perc.kind: exact; }
        actions = { update_bound; new_round; NoAction; }
        const entries = {
            UPDATE: update_bound();
            ROUND: new_round();
        }
    }

    // Line 17: the division.
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

    // Lines 19 and 22.
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

    // Lines 35 and 36. The number becomes that of the link: one more would never catch up for a new flow.
    action number_first() {
        hdr.l0.number = meta.number;
    }
    action number_second() {
        hdr.l1.number = meta.number;
    }
    action number_third() {
        hdr.l2.number = meta.number;
    }
    action number_fourth() {
        hdr.l3.number = meta.number;
    }
    table store_number {
        key = { hdr.perc.hop: exact; }
        actions = { number_first; number_second; number_third; number_fourth; NoAction; }
        const entries = {
            0: number_first();
            1: number_second();
            2: number_third();
            3: number_fourth();
        }
    }

    // Tx_ctrl: the interval at which the control packets of N flows take their share of the link.
    action interval() {
        bit<64> product = (bit<64>)meta.tx_of_flow * (bit<64>)((meta.flows == 0) ? 32w1 : meta.flows) + 65535;
        bit<32> tx = product[47:16];
        hdr.perc.tx = (tx > hdr.perc.tx) ? tx : hdr.perc.tx;
    }
    action longest_period() {
        meta.longest = (hdr.perc.tx > hdr.perc.period) ? hdr.perc.tx : hdr.perc.period;
    }
    action shortest_round() {
        bit<32> quarter = meta.longest >> 2;
        meta.need = (meta.longest + ((meta.wait < quarter) ? meta.wait : quarter)) |-| 1;
    }
    action needs(bit<8> exponent) {
        meta.need_exponent = exponent;
    }
    table need_leading_one {
        key = { meta.need: ternary; }
        actions = { needs; NoAction; }
        default_action = needs(0);
        size = 33;
    }

    // "Adjusting round automatically": doubled at once, halved once half was enough during MaxRound.
    action adjust() {
        bit<8> exponent;
        bit<8> longest;
        bit<48> from;
        round_exponent.read(exponent, meta.link);
        longest_exponent.read(longest, meta.link);
        since.read(from, meta.link);
        if (meta.need_exponent > longest) {
            longest = meta.need_exponent;
        }
        if (meta.need_exponent > exponent) {
            exponent = meta.need_exponent;
        }
        if (standard.egress_global_timestamp - from >= PATIENCE) {
            if (longest < exponent) {
                exponent = exponent - 1;
            }
            longest = meta.need_exponent;
            from = standard.egress_global_timestamp;
        }
        meta.round = 48w1 << exponent;
        round_exponent.write(meta.link, exponent);
        longest_exponent.write(meta.link, longest);
        since.write(meta.link, from);
    }
    action present() {
        bit<8> exponent;
        round_exponent.read(exponent, meta.link);
        meta.round = 48w1 << exponent;
    }
    table adjustment {
        key = { hdr.perc.kind: exact; }
        actions = { adjust; present; NoAction; }
        const entries = {
            UPDATE: adjust();
            TICK: present();
        }
    }
    // The packet reports the longest round: the source waits for two of them before it restarts a flow.
    action report() {
        hdr.perc.round = (meta.round > hdr.perc.round) ? meta.round : hdr.perc.round;
    }
    action look() {
        bit<48> end;
        due.read(end, meta.link);
        // Time wraps: it is past the end if it is ahead by less than half of its range. 0: no round has begun.
        bit<48> past = standard.egress_global_timestamp - end;
        if (past[47:47] == 0 || end == 0) {
            end = standard.egress_global_timestamp + meta.round;
            hdr.perc.kind = ROUND;
        }
        due.write(meta.link, end);
    }
    action rest_again() {
        hdr.perc.kind = TICK;
    }
    table clock {
        key = { hdr.perc.kind: exact; }
        actions = { report; look; rest_again; NoAction; }
        const entries = {
            UPDATE: report();
            TICK: look();
            ROUND: rest_again();
        }
    }

    apply {
        if (hdr.perc.isValid()) {
            capacity.apply();
            rounds.apply();
            own_field.apply();
            least_of_pairs();
            least();
            flow_count.apply();
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
                store_number.apply();
                interval();
                longest_period();
                shortest_round();
                need_leading_one.apply();
            }
            adjustment.apply();
            clock.apply();
        }
    }
}

control PercDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.perc);
        packet.emit(hdr.l0);
        packet.emit(hdr.l1);
        packet.emit(hdr.l2);
        packet.emit(hdr.l3);
    }
}

V1Switch(PercParser(), NoChecksum(), PercIngress(), PercEgress(), NoChecksum(), PercDeparser()) main;
