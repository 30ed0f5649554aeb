/* The shared ring's header page as the audio thread sees it; the same layout as audio/ring.py. */
#ifndef UTTERD_RING_H
#define UTTERD_RING_H
#include <stdint.h>
#include <string.h>

enum {
    RING_TAIL = 128,
    RING_PLAYED = 136,
    RING_FENCE = 192,
    RING_PAUSED = 256,
    RING_GAIN = 264,
    RING_HEARTBEAT = 320,
    RING_BEGUN = 328,
    RING_REVOKED = 1024,
    RING_REVOKED_SLOTS = 256,
    RING_HEADER_BYTES = 4096,
};

static inline uint64_t ring_load(const char *ring, int at) {
    return __atomic_load_n((const uint64_t *)(ring + at), __ATOMIC_ACQUIRE);
}

static inline void ring_store(char *ring, int at, uint64_t value) {
    __atomic_store_n((uint64_t *)(ring + at), value, __ATOMIC_RELEASE);
}

static inline int ring_dropped(const char *ring, uint64_t generation) {
    int slot = RING_REVOKED + 8 * (int)(generation % RING_REVOKED_SLOTS);
    return generation < ring_load(ring, RING_FENCE) || ring_load(ring, slot) == generation;
}

/* A gain nobody can have meant is left out, never handed to the speaker. */
static inline float ring_gain(const char *ring) {
    uint64_t bits = ring_load(ring, RING_GAIN);
    double gain;
    memcpy(&gain, &bits, sizeof gain);
    return gain >= 0.0 && gain <= 4.0 ? (float)gain : 1.0f;
}
#endif
