/*
 * A scheme for Subak in C, or in any language that builds a shared object with this table:
 *
 *     cc -O2 -shared -fPIC -o mine.so mine.c
 *
 *     [[scheme]]
 *     library = "mine.so"
 *
 * The library exports one function, subak_scheme(), which returns its table. A function that is NULL is never called.
 * All functions of one trial are called by one thread. Each trial loads a copy of the library of its own.
 * Rates are in bit/s on the wire, windows in payload bytes, times in ns of the simulation.
 */
#ifndef SUBAK_SCHEME_H
#define SUBAK_SCHEME_H

#include <math.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SUBAK_SCHEME_VERSION 2
/* How many numbers a header or a message has. */
#define SUBAK_NUMBERS 8
/* No limit, as a rate or a window. */
#define SUBAK_NO_LIMIT INFINITY
/* Size and remaining bytes of an endless flow. */
#define SUBAK_ENDLESS UINT64_MAX

enum subak_class { SUBAK_CONTROL = 0, SUBAK_HIGH = 1, SUBAK_LOW = 2 };
enum subak_loss_kind { SUBAK_REORDERED = 0, SUBAK_TIMEOUT = 1, SUBAK_OUT_OF_ORDER = 2 };

/* A parameter. unit: "", "packets", "bytes", "s" or "bit/s"; create() gets the values in this order. */
struct subak_param {
    const char *name;
    double value;
    const char *unit;
    const char *about;
};

struct subak_path {
    double line_rate_bps;    /* of the first link */
    double min_capacity_bps; /* of the narrowest link */
    uint64_t base_rtt_ns;
    uint32_t hops;
    uint32_t id; /* identity of the links after the first: path_id of an ACK */
};

struct subak_flow {
    double weight;
    uint64_t size_bytes; /* SUBAK_ENDLESS: endless flow */
    double demand_bps;
    uint64_t rtt_ns; /* the longest base RTT of the network */
    uint64_t seed;
    const struct subak_path *paths; /* one for each subflow; valid only during source() */
    uint32_t subflows;
    uint32_t flow;
    uint32_t mss_bytes;
    uint32_t mtu_bytes;
};

struct subak_port {
    double capacity_bps;
    uint64_t delay_ns;
    uint64_t buffer_bytes;
    uint64_t queued_bytes;
    uint64_t rtt_ns;
    uint64_t seed;
    uint32_t link;
    uint32_t queued_packets;
    uint32_t mtu_bytes;
};

/* Hooks may write numbers and ecn; stamp() may also write class_. */
struct subak_packet {
    double numbers[SUBAK_NUMBERS];
    uint64_t sent_ns;
    uint64_t waited_ns;
    uint32_t flow;
    uint32_t bytes;
    uint32_t payload_bytes;
    uint32_t segment;
    uint32_t hop;
    uint8_t subflow;
    uint8_t is_data; /* otherwise an ACK */
    uint8_t ecn;
    uint8_t class_;
};

/* Telemetry of a link, as the packet left it. at_ns and sent_bytes wrap around at 2^32: subtract them as uint32_t. */
struct subak_record {
    uint32_t at_ns;
    uint32_t sent_bytes;   /* by the link so far, this packet included */
    uint32_t queued_bytes; /* behind the packet */
    float bytes_per_ns;    /* rate of the link */
};

struct subak_ack {
    double numbers[SUBAK_NUMBERS];
    uint64_t acked_bytes;
    uint64_t rtt_ns;
    uint64_t in_flight_bytes;
    uint64_t remaining_bytes; /* SUBAK_ENDLESS: endless flow */
    const struct subak_record *links; /* of each link after the first; only with links = "Telemetry" */
    uint32_t link_count;
    uint32_t path_id; /* of the path that the packet took; only with links = "Telemetry" */
    uint32_t segment;
    uint32_t next_segment;
    uint8_t subflow;
    uint8_t ecn;
};

struct subak_loss {
    uint64_t in_flight_bytes;
    uint32_t segment;
    uint32_t next_segment;
    uint8_t subflow;
    uint8_t kind; /* enum subak_loss_kind */
};

struct subak_visit {
    uint32_t flow;
    uint32_t hop; /* index of the link on the data path, from the source */
    uint8_t subflow;
    uint8_t forward;
};

/* Requests of a source or hop to the simulator. Valid only during the hook to which it is passed. */
struct subak_io {
    uint64_t now_ns;
    /* Sets a subflow's pacing rate and congestion window; only for sources. */
    void (*pace)(struct subak_io *, uint32_t subflow, double rate_bps, double window_bytes);
    /* Calls on_timer(number) at at_ns; a time in the past is now. */
    void (*timer)(struct subak_io *, uint32_t number, uint64_t at_ns);
    /* Sends a message of SUBAK_NUMBERS numbers to the sink, which returns it; only for sources. */
    void (*send)(struct subak_io *, uint32_t subflow, const double *numbers, uint32_t bytes, uint32_t class_);
    /* Holds the queued packets of a class before this link (on != 0), or releases them; only for hops. */
    void (*pause)(struct subak_io *, uint32_t class_, uint32_t on);
    /* A random number in [0, 1), from a stream of the source's or hop's own. */
    double (*random)(struct subak_io *);
    /* Records a value of a subflow (-1: none) as a row of kind note in the results. */
    void (*note)(struct subak_io *, int32_t subflow, const char *name, double value);
    /* Ends the trial with this text. */
    void (*fail)(struct subak_io *, const char *why);
    void *context;
};

/* flags of a table */
#define SUBAK_LOSSLESS 1       /* switches pause links (PFC) and do not drop; queue = "Priority" */
#define SUBAK_GO_BACK_N 2      /* receivers drop segments out of order; the RTO alone marks segments lost */
#define SUBAK_ROUND_ROBIN 4    /* hosts serve their flows round robin */
#define SUBAK_PATH_DEPENDENT 8 /* all packets of a subflow take one path */

struct subak_scheme {
    uint32_t version; /* SUBAK_SCHEME_VERSION */
    uint32_t param_count;
    const char *name;
    const char *about; /* one line */
    const char *paper;
    const struct subak_param *params;
    const char *queue; /* "Fifo" (also NULL), "Priority", "Rank" or "Stfq" */
    const char *mark;  /* name of the ECN threshold parameter, packets (at 10 Gb/s) or bytes; NULL: no marks */
    const char *red_high; /* RED: parameter of the queue from which on all packets are marked, in the unit of mark; or NULL */
    const char *red_most; /* RED: parameter of the probability of a mark just below red_high; or NULL */
    const char *links;    /* state at links: "Telemetry" (without stamp, hop_on_enqueue, hop_on_dequeue), "LargestWait" (numbers[0], ns), or NULL */
    uint64_t flags;
    uint32_t header_bytes;
    uint32_t ack_header_bytes;
    uint64_t rto_min_ns; /* 0: the RTT when all buffers are full */
    uint64_t rto_max_ns; /* 0: 60 s */
    /* Makes a scheme with these parameters; NULL if they are invalid. */
    void *(*create)(const double *params);
    void (*destroy)(void *scheme);
    /* The sender of a flow. */
    void *(*source)(void *scheme, const struct subak_flow *);
    void (*source_free)(void *source);
    void (*on_start)(void *source, struct subak_io *);
    void (*stamp)(void *source, uint64_t now_ns, struct subak_packet *, uint64_t remaining_bytes);
    void (*on_ack)(void *source, struct subak_io *, const struct subak_ack *);
    void (*on_loss)(void *source, struct subak_io *, const struct subak_loss *);
    void (*on_timer)(void *source, struct subak_io *, uint32_t number);
    void (*on_message)(void *source, struct subak_io *, const double *numbers, uint32_t subflow);
    void (*on_weight)(void *source, struct subak_io *, double weight);
    void (*on_reroute)(void *source, struct subak_io *, uint32_t subflow, const struct subak_path *);
    void (*on_finish)(void *source, struct subak_io *);
    /* The state at a link. */
    void *(*hop)(void *scheme, const struct subak_port *);
    void (*hop_free)(void *hop);
    void (*hop_on_start)(void *hop, struct subak_io *);
    void (*hop_on_enqueue)(void *hop, struct subak_io *, struct subak_packet *, const struct subak_port *);
    void (*hop_on_dequeue)(void *hop, struct subak_io *, struct subak_packet *, const struct subak_port *);
    void (*hop_on_message)(void *hop, struct subak_io *, double *numbers, const struct subak_visit *, const struct subak_port *);
    void (*hop_on_timer)(void *hop, struct subak_io *, uint32_t number, const struct subak_port *);
    void (*hop_on_capacity)(void *hop, const struct subak_port *);
};

const struct subak_scheme *subak_scheme(void);

#ifdef __cplusplus
}
#endif

#endif
