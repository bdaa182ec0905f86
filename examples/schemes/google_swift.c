/* Google's Swift in C: congestion windows by the difference between the RTT and a target.
 * Kumar et al., Swift: Delay is Simple and Effective for Congestion Control in the Datacenter, SIGCOMM 2020, algorithm 1.
 *
 *     cc -O2 -ffp-contract=off -shared -fPIC -o google_swift.so google_swift.c
 *
 * With -ffp-contract=off, rounding is the same on all processors, and results equal those of "google-swift".
 */
#include "subak_scheme.h"
#include <stdlib.h>

enum { AI, BETA, MAX_MDF, BASE_TARGET, HOP_SCALE, FS_RANGE, FS_MIN, FS_MAX, MIN_CWND, MAX_CWND, RETX_RESET, INITIAL };

static const struct subak_param PARAMS[] = {
    [AI] = {"ai", 1, "packets", "additive increase of the window an RTT"},
    [BETA] = {"beta", 0.8, "", "gain of cuts"},
    [MAX_MDF] = {"max_mdf", 0.5, "", "maximum fraction of a cut"},
    [BASE_TARGET] = {"base_target", 0, "s", "target without hops; 0: 1.25 base RTTs, and at least 25 us"},
    [HOP_SCALE] = {"hop_scale", 1e-6, "s", "addition to the target for each link of the path"},
    [FS_RANGE] = {"fs_range", 100e-6, "s", "maximum addition to the target for small windows"},
    [FS_MIN] = {"fs_min_cwnd", 0.1, "", "packets of the window that adds the most"},
    [FS_MAX] = {"fs_max_cwnd", 100, "", "packets of the window from which on nothing is added"},
    [MIN_CWND] = {"min_cwnd", 0.001, "", "the least window, packets"},
    [MAX_CWND] = {"max_cwnd", 1000, "packets", "the largest window"},
    [RETX_RESET] = {"retx_reset", 5, "", "timeouts in a row that bring the window to its least"},
    [INITIAL] = {"initial_window", 10, "packets", "window at the start of a flow"},
};

/* Times are in ns, windows in packets. */
struct scheme {
    double ai, beta, max_mdf, base_target, hop_scale, fs_range, a, b, min_cwnd, max_cwnd, retx_reset, initial;
};

struct window {
    double cwnd, target; /* target: without the term for small windows */
    uint64_t rtt, decreased;
    int has_decreased;
    uint32_t timeouts; /* in a row */
};

struct sender {
    const struct scheme *scheme;
    double mss;
    uint32_t subflows;
    struct window windows[];
};

static double clamp(double x, double least, double most) { return fmin(fmax(x, least), most); }

static void *create(const double *p) {
    if (!(p[FS_MIN] > 0 && p[FS_MAX] > p[FS_MIN] && p[MIN_CWND] > 0 && p[MIN_CWND] <= 1 && p[MAX_CWND] >= 1)) return NULL;
    struct scheme *s = malloc(sizeof *s);
    if (!s) return NULL;
    double range = p[FS_RANGE] * 1e9;
    double a = range / (1 / sqrt(p[FS_MIN]) - 1 / sqrt(p[FS_MAX]));
    *s = (struct scheme){p[AI], p[BETA], p[MAX_MDF], p[BASE_TARGET] * 1e9, p[HOP_SCALE] * 1e9, range,
                         a, -a / sqrt(p[FS_MAX]), p[MIN_CWND], p[MAX_CWND], p[RETX_RESET], p[INITIAL]};
    return s;
}

static struct window window(const struct scheme *s, const struct subak_path *path) {
    double base = s->base_target > 0 ? s->base_target : fmax(1.25 * (double)path->base_rtt_ns, 25e3);
    return (struct window){.cwnd = fmin(s->initial, s->max_cwnd),
                           .target = base + path->hops * s->hop_scale,
                           .rtt = path->base_rtt_ns ? path->base_rtt_ns : 1};
}

static void *source(void *scheme, const struct subak_flow *flow) {
    struct sender *made = calloc(1, sizeof *made + flow->subflows * sizeof made->windows[0]);
    if (!made) return NULL;
    made->scheme = scheme;
    made->mss = flow->mss_bytes;
    made->subflows = flow->subflows;
    for (uint32_t k = 0; k < flow->subflows; k++) made->windows[k] = window(scheme, &flow->paths[k]);
    return made;
}

/* A window below one packet is one packet, paced. */
static void pace(struct sender *s, struct subak_io *io, uint32_t k) {
    struct window *w = &s->windows[k];
    double rate = w->cwnd < 1 ? 8e9 * s->mss * w->cwnd / (double)w->rtt : SUBAK_NO_LIMIT;
    io->pace(io, k, rate, fmax(w->cwnd, 1) * s->mss);
}

static void set(const struct scheme *s, struct window *w, uint64_t now, double cwnd) {
    double before = w->cwnd;
    w->cwnd = clamp(cwnd, s->min_cwnd, s->max_cwnd);
    if (w->cwnd < before) {
        w->decreased = now;
        w->has_decreased = 1;
    }
}

/* At most one cut an RTT. */
static void cut(const struct scheme *s, struct window *w, uint64_t now, double factor) {
    if (!w->has_decreased || now >= w->decreased + w->rtt) set(s, w, now, w->cwnd * factor);
}

static void on_start(void *source, struct subak_io *io) {
    struct sender *sender = source;
    for (uint32_t k = 0; k < sender->subflows; k++) pace(sender, io, k);
}

static void on_ack(void *source, struct subak_io *io, const struct subak_ack *ack) {
    struct sender *sender = source;
    const struct scheme *s = sender->scheme;
    struct window *w = &sender->windows[ack->subflow];
    w->timeouts = 0;
    w->rtt = ack->rtt_ns ? ack->rtt_ns : 1;
    double delay = (double)w->rtt;
    double target = w->target + clamp(s->a / sqrt(w->cwnd) + s->b, 0, s->fs_range);
    if (delay < target) {
        double packets = (double)ack->acked_bytes / sender->mss;
        set(s, w, io->now_ns, w->cwnd + (w->cwnd >= 1 ? s->ai / w->cwnd : s->ai) * packets);
    } else {
        cut(s, w, io->now_ns, fmax(1 - s->beta * (delay - target) / delay, 1 - s->max_mdf));
    }
    pace(sender, io, ack->subflow);
}

static void on_loss(void *source, struct subak_io *io, const struct subak_loss *loss) {
    struct sender *sender = source;
    const struct scheme *s = sender->scheme;
    struct window *w = &sender->windows[loss->subflow];
    w->timeouts = loss->kind == SUBAK_TIMEOUT ? w->timeouts + 1 : 0;
    if (w->timeouts >= s->retx_reset) set(s, w, io->now_ns, s->min_cwnd);
    else cut(s, w, io->now_ns, 1 - s->max_mdf);
    pace(sender, io, loss->subflow);
}

static void on_reroute(void *source, struct subak_io *io, uint32_t subflow, const struct subak_path *path) {
    struct sender *sender = source;
    sender->windows[subflow] = window(sender->scheme, path);
    pace(sender, io, subflow);
}

const struct subak_scheme *subak_scheme(void) {
    static const struct subak_scheme table = {
        .version = SUBAK_SCHEME_VERSION,
        .name = "google-swift-c",
        .about = "Google's Swift in C: windows by delay, with a target that grows with hops and flows",
        .paper = "Kumar et al., SIGCOMM 2020",
        .params = PARAMS,
        .param_count = sizeof PARAMS / sizeof PARAMS[0],
        .rto_min_ns = 1000000,
        .create = create,
        .destroy = free,
        .source = source,
        .source_free = free,
        .on_start = on_start,
        .on_ack = on_ack,
        .on_loss = on_loss,
        .on_reroute = on_reroute,
    };
    return &table;
}
