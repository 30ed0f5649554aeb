/* A copy of what the device is given, for those who subscribe to it: a queue with one writer (the
 * audio thread) and one reader (the interpreter), neither of which ever waits. While nobody
 * listens nothing is copied, and before anybody has there is not even memory for it. */
#ifndef UTTERD_TAP_H
#define UTTERD_TAP_H
#include <stdint.h>

#define TAP_FRAMES 1024
#define TAP_SLOTS 128

struct slot {
    uint64_t index;  /* frames the device had taken before, since it was opened */
    uint64_t dac_ns; /* when the first of these reaches the DAC */
    uint32_t frames;
    float samples[TAP_FRAMES];
};

struct tap {
    uint32_t listening; /* interpreter */
    uint64_t head;      /* audio thread; free-running count */
    uint64_t tail;      /* interpreter */
    uint64_t copied;    /* audio thread: frames */
    uint64_t dropped;   /* audio thread: frames for which there was no room */
    struct slot *slots; /* interpreter: set once, before `listening` */
};

/* Copies up to TAP_FRAMES samples where somebody listens; drops them where the queue is full. */
void tap_put(struct tap *tap, const float *samples, uint32_t frames, uint64_t index,
             uint64_t dac_ns);
/* Returns 0 where there is no memory. */
int tap_listen(struct tap *tap, int listening);
/* The oldest copy, or NULL; it stays valid until `tap_pop`. */
const struct slot *tap_first(struct tap *tap);
void tap_pop(struct tap *tap);
#endif
