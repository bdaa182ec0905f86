/* DCTCP in C: links mark packets, senders cut their windows by the share that is marked.
 * Alizadeh et al., Data Center TCP, SIGCOMM 2010, equations 1 and 2.
 *
 *     cc -O2 -shared -fPIC -o dctcp.so dctcp.c
 */
#include "subak_scheme.h"
#include <stdlib.h>

enum { K, G, INITIAL_WINDOW };

static const struct subak_param PARAMS[] = {
    [K] = {"k", 65, "packets", "marking threshold at 10 Gb/s"},
    [G] = {"g", 1.0 / 16, "", "gain of the estimate of the marked share"},
    [INITIAL_WINDOW] = {"initial_window", 10, "packets", "window at the start of a flow"},
};

struct scheme {
    double g, initial_window;
};

struct window {
    double mss, size, threshold, alpha;
    uint64_t acked, marked;
    uint32_t recover, observe_until;
    int recovering;
};

struct sender {
    double g;
    uint32_t subflows;
    struct window windows[];
};

static void *create(const double *params) {
    struct scheme *s = malloc(sizeof *s);
    if (s) *s = (struct scheme){.g = params[G], .initial_window = params[INITIAL_WINDOW]};
    return s;
}

static void *source(void *scheme, const struct subak_flow *flow) {
    const struct scheme *s = scheme;
    struct sender *made = calloc(1, sizeof *made + flow->subflows * sizeof made->windows[0]);
    if (!made) return NULL;
    made->g = s->g;
    made->subflows = flow->subflows;
    for (uint32_t k = 0; k < flow->subflows; k++)
        made->windows[k] = (struct window){.mss = flow->mss_bytes,
                                           .size = s->initial_window * flow->mss_bytes,
                                           .threshold = INFINITY,
                                           .alpha = 1};
    return made;
}

static void cut(struct window *w, double factor, uint32_t next_segment) {
    w->threshold = fmax(w->size * factor, 2 * w->mss);
    w->size = w->threshold;
    w->recover = next_segment;
}

static void grow(struct window *w, const struct subak_ack *ack) {
    double acked = (double)ack->acked_bytes;
    if (ack->segment >= w->recover) w->recovering = 0;
    if (w->recovering || (double)(ack->in_flight_bytes + ack->acked_bytes) + w->mss < w->size) return;
    w->size += w->size < w->threshold ? acked : w->mss * acked / w->size;
}

static void pace(struct subak_io *io, uint32_t subflow, const struct window *w) {
    io->pace(io, subflow, SUBAK_NO_LIMIT, w->size);
}

static void on_start(void *source, struct subak_io *io) {
    struct sender *s = source;
    for (uint32_t k = 0; k < s->subflows; k++) pace(io, k, &s->windows[k]);
}

static void on_ack(void *source, struct subak_io *io, const struct subak_ack *ack) {
    struct sender *s = source;
    struct window *w = &s->windows[ack->subflow];
    w->acked += ack->acked_bytes;
    if (ack->ecn) {
        w->marked += ack->acked_bytes;
        if (ack->segment >= w->recover) cut(w, 1 - w->alpha / 2, ack->next_segment);
    } else {
        grow(w, ack);
    }
    if (ack->segment >= w->observe_until && w->acked > 0) {
        w->alpha = (1 - s->g) * w->alpha + s->g * ((double)w->marked / (double)w->acked);
        w->acked = w->marked = 0;
        w->observe_until = ack->next_segment;
    }
    pace(io, ack->subflow, w);
}

static void on_loss(void *source, struct subak_io *io, const struct subak_loss *loss) {
    struct window *w = &((struct sender *)source)->windows[loss->subflow];
    if (loss->segment >= w->recover) {
        cut(w, 0.5, loss->next_segment);
        w->recovering = loss->kind != SUBAK_TIMEOUT;
    }
    if (loss->kind == SUBAK_TIMEOUT) {
        w->size = (double)loss->in_flight_bytes + w->mss;
        w->recovering = 0;
    }
    pace(io, loss->subflow, w);
}

const struct subak_scheme *subak_scheme(void) {
    static const struct subak_scheme table = {
        .version = SUBAK_SCHEME_VERSION,
        .name = "dctcp-c",
        .about = "DCTCP in C: windows are cut by the share of marked packets",
        .paper = "Alizadeh et al., SIGCOMM 2010",
        .params = PARAMS,
        .param_count = sizeof PARAMS / sizeof PARAMS[0],
        .mark = "k",
        .rto_min_ns = 1000000,
        .create = create,
        .destroy = free,
        .source = source,
        .source_free = free,
        .on_start = on_start,
        .on_ack = on_ack,
        .on_loss = on_loss,
    };
    return &table;
}
