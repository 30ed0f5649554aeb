#include "tap.h"

#include <stdlib.h>
#include <string.h>

void tap_put(struct tap *tap, const float *samples, uint32_t frames, uint64_t index,
             uint64_t dac_ns) {
    if (!__atomic_load_n(&tap->listening, __ATOMIC_ACQUIRE))
        return;
    if (tap->head - __atomic_load_n(&tap->tail, __ATOMIC_ACQUIRE) == TAP_SLOTS) {
        __atomic_store_n(&tap->dropped, tap->dropped + frames, __ATOMIC_RELAXED);
        return;
    }
    struct slot *slot = &tap->slots[tap->head % TAP_SLOTS];
    slot->index = index;
    slot->dac_ns = dac_ns;
    slot->frames = frames;
    memcpy(slot->samples, samples, frames * sizeof(float));
    __atomic_store_n(&tap->copied, tap->copied + frames, __ATOMIC_RELAXED);
    __atomic_store_n(&tap->head, tap->head + 1, __ATOMIC_RELEASE);
}

int tap_listen(struct tap *tap, int listening) {
    if (listening && tap->slots == NULL) {
        tap->slots = calloc(TAP_SLOTS, sizeof *tap->slots);
        if (tap->slots == NULL)
            return 0;
    }
    __atomic_store_n(&tap->listening, (uint32_t)listening, __ATOMIC_RELEASE);
    return 1;
}

const struct slot *tap_first(struct tap *tap) {
    if (tap->tail == __atomic_load_n(&tap->head, __ATOMIC_ACQUIRE))
        return NULL;
    return &tap->slots[tap->tail % TAP_SLOTS];
}

void tap_pop(struct tap *tap) {
    __atomic_store_n(&tap->tail, tap->tail + 1, __ATOMIC_RELEASE);
}
