/* A scheme whose hooks ask for random things, valid or not: the parameter "seed" draws them. */
#include "subak_scheme.h"
#include <stddef.h>

#ifndef QUEUE
#define QUEUE "Fifo"
#endif

static const struct subak_param PARAMS[] = {
    {"seed", 0, "", "of the requests"},
    {"odd", 0.02, "", "share of requests that are drawn from all values"},
};
static uint64_t state;
static double odd;

static uint64_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state * 0x2545F4914F6CDD1Dull;
}
static int chance(double share) { return (double)(draw() >> 11) * 0x1p-53 < share; }

static double number(void) {
    static const double ODD[] = {0,    -0.0,   1,   -1,  NAN, INFINITY, -INFINITY, 1e308, -1e308, 5e-324, 0x1p63,
                                 0x1p64, 1e-300, 0.5, 255, 256, 65535,    65536,     1e19,  4294967296.0};
    if (!chance(odd)) return (double)(draw() % 100000);
    if (chance(0.1)) return (union { uint64_t bits; double x; }){draw()}.x;
    return ODD[draw() % (sizeof ODD / sizeof ODD[0])];
}
static uint32_t whole(uint32_t below) {
    static const uint32_t ODD[] = {0, 1, 2, 3, 7, 255, 256, 65535, 65536, INT32_MAX, 0x80000000u, UINT32_MAX};
    return chance(odd) ? ODD[draw() % (sizeof ODD / sizeof ODD[0])] : (uint32_t)(draw() % below);
}
static uint64_t at(uint64_t now) {
    const uint64_t ODD[] = {0, now, now - 1, now + 1, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2, 1ull << 62, 1ull << 63};
    return chance(odd) ? ODD[draw() % (sizeof ODD / sizeof ODD[0])] : now + draw() % 100000;
}

static const char *const NAMES[] = {"a", "b", "\xff", NULL};

static void ask(struct subak_io *io, int is_hop) {
    for (uint64_t left = draw() % 3; left > 0; left--) {
        double numbers[SUBAK_NUMBERS];
        for (int k = 0; k < SUBAK_NUMBERS; k++) numbers[k] = number();
        switch (chance(odd) ? draw() % 7 : is_hop ? 2 + draw() % 2 * 2 : draw() % 3) {
        case 0: io->pace(io, whole(1), chance(0.5) ? SUBAK_NO_LIMIT : number() * 1e5, number()); break;
        case 1: io->send(io, whole(1), chance(odd) ? NULL : numbers, 1 + whole(1500), whole(3)); break;
        case 2: if (chance(0.4)) io->timer(io, whole(4), at(io->now_ns)); break;
        case 3: io->random(io); break;
        case 4: io->pause(io, whole(3), whole(2)); break;
        case 6: io->note(io, (int32_t)whole(2) - 1, NAMES[draw() % 4], number()); break;
        case 5: if (chance(odd)) io->fail(io, chance(0.5) ? NULL : "\xff\xfe no text, \"quoted\"\n"); break;
        }
    }
}

static void spoil(struct subak_packet *p) {
    if (chance(0.5)) p->numbers[draw() % SUBAK_NUMBERS] = number();
    p->ecn = (uint8_t)whole(2);
    if (chance(odd)) {
        p->flow = p->bytes = p->payload_bytes = p->segment = p->hop = whole(9);
        p->subflow = p->is_data = (uint8_t)whole(9);
        p->sent_ns = p->waited_ns = at(0);
    }
}

static void *create(const double *params) {
    state = (uint64_t)params[0] * 0x9E3779B97F4A7C15ull + 1;
    odd = params[1];
    for (int k = 0; k < 20; k++) draw();
    return (void *)PARAMS;
}
static void *source(void *s, const struct subak_flow *f) { (void)f; return chance(odd / 10) ? NULL : s; }
static void on_start(void *s, struct subak_io *io) { (void)s; io->pace(io, 0, SUBAK_NO_LIMIT, 30000); ask(io, 0); }
static void on_finish(void *s, struct subak_io *io) { (void)s; ask(io, 0); }
static void stamp(void *s, uint64_t now, struct subak_packet *p, uint64_t left) {
    (void)s, (void)now, (void)left;
    spoil(p);
    p->class_ = (uint8_t)(chance(odd / 50) ? draw() : draw() % 3);
}
static void on_ack(void *s, struct subak_io *io, const struct subak_ack *a) { (void)s, (void)a; ask(io, 0); }
static void on_loss(void *s, struct subak_io *io, const struct subak_loss *l) { (void)s, (void)l; ask(io, 0); }
static void on_timer(void *s, struct subak_io *io, uint32_t n) { (void)s, (void)n; ask(io, 0); }
static void on_message(void *s, struct subak_io *io, const double *m, uint32_t k) { (void)s, (void)m, (void)k; ask(io, 0); }
static void on_weight(void *s, struct subak_io *io, double w) { (void)s, (void)w; ask(io, 0); }
static void on_reroute(void *s, struct subak_io *io, uint32_t k, const struct subak_path *p) { (void)s, (void)k, (void)p; ask(io, 0); }

static void *hop(void *s, const struct subak_port *p) { (void)p; return chance(0.3) ? NULL : s; }
static void hop_on_start(void *h, struct subak_io *io) { (void)h; ask(io, 1); }
static void hop_on_packet(void *h, struct subak_io *io, struct subak_packet *p, const struct subak_port *port) {
    (void)h, (void)port;
    spoil(p);
    ask(io, 1);
}
static void hop_on_message(void *h, struct subak_io *io, double *m, const struct subak_visit *v, const struct subak_port *p) {
    (void)h, (void)v, (void)p;
    m[draw() % SUBAK_NUMBERS] = number();
    ask(io, 1);
}
static void hop_on_timer(void *h, struct subak_io *io, uint32_t n, const struct subak_port *p) { (void)h, (void)n, (void)p; ask(io, 1); }
static void hop_on_capacity(void *h, const struct subak_port *p) { (void)h, (void)p; }

const struct subak_scheme *subak_scheme(void) {
    static const struct subak_scheme table = {
        .version = SUBAK_SCHEME_VERSION, .name = "hostile", .params = PARAMS, .param_count = 2, .queue = QUEUE,
        .header_bytes = 8, .ack_header_bytes = 8, .create = create, .source = source, .on_start = on_start,
        .stamp = stamp, .on_ack = on_ack, .on_loss = on_loss, .on_timer = on_timer, .on_message = on_message,
        .on_weight = on_weight, .on_reroute = on_reroute, .on_finish = on_finish, .hop = hop,
        .hop_on_start = hop_on_start, .hop_on_enqueue = hop_on_packet, .hop_on_dequeue = hop_on_packet,
        .hop_on_message = hop_on_message, .hop_on_timer = hop_on_timer, .hop_on_capacity = hop_on_capacity,
    };
    return &table;
}
