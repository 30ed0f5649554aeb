/* The callback that the host calls for every period, in its own thread, never in the interpreter. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core.h"
#include "ring.h"

#define CHUNK TAP_FRAMES
#define OUTPUT_UNDERFLOW 4
#define REALTIME_PRIORITY 20
#define REALTIME_LIMIT_US 100000
#define LONGEST_LATENCY_S 2.0

int runaway;

uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* In the thread that has run for REALTIME_LIMIT_US without a pause: no longer before all others. */
static void calm_down(int number) {
    (void)number;
    struct sched_param ordinary = {.sched_priority = 0};
    sched_setscheduler(0, SCHED_OTHER, &ordinary);
    __atomic_store_n(&runaway, 1, __ATOMIC_RELEASE);
}

/* SCHED_FIFO where it is granted. A host API may go mad in its own loop (ALSA does when PipeWire
 * dies) and would take a core from the whole machine with it, hence the limit. */
static int become_realtime(void) {
    struct rlimit limit;
    struct sched_param wanted = {.sched_priority = REALTIME_PRIORITY};
    struct sigaction action = {.sa_handler = calm_down, .sa_flags = SA_RESTART};
    if (sigaction(SIGXCPU, &action, NULL) != 0 || getrlimit(RLIMIT_RTTIME, &limit) != 0)
        return 0;
    if (limit.rlim_cur > REALTIME_LIMIT_US)
        limit.rlim_cur = REALTIME_LIMIT_US;
    if (setrlimit(RLIMIT_RTTIME, &limit) != 0 ||
        sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &wanted) != 0)
        return 0;
    return (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
}

static void spread(const struct core *core, const float *mono, uint32_t frames, void *output) {
    uint32_t channels = core->channels;
    uint32_t sounding = channels < 2 ? channels : 2; /* front left and right; no more */
    if (core->int16) {
        int16_t *out = output;
        for (uint32_t i = 0; i < frames; i++, out += channels) {
            int16_t sample = (int16_t)lrintf(mono[i] * 32767.0f);
            for (uint32_t c = 0; c < channels; c++)
                out[c] = c < sounding ? sample : 0;
        }
        return;
    }
    float *out = output;
    for (uint32_t i = 0; i < frames; i++, out += channels)
        for (uint32_t c = 0; c < channels; c++)
            out[c] = c < sounding ? mono[i] : 0.0f;
}

static void wake_interpreter(struct core *core, uint64_t events_before) {
    uint64_t queued =
        __atomic_load_n(&core->frames_in, __ATOMIC_ACQUIRE) - core->frames_out;
    int refill = queued < core->low_water && __atomic_load_n(&core->refill, __ATOMIC_ACQUIRE);
    if (refill)
        __atomic_store_n(&core->refill, 0, __ATOMIC_RELEASE);
    int tapped = __atomic_load_n(&core->tap.listening, __ATOMIC_ACQUIRE) != 0;
    if (refill || tapped || core->event_head != events_before) {
        uint64_t one = 1;
        ssize_t ignored = write(core->wake_fd, &one, sizeof one);
        (void)ignored; /* a full counter wakes as well */
    }
}

int audio_callback(const void *input, void *output, unsigned long frames,
                   const struct pa_time *time, unsigned long flags, void *user) {
    (void)input;
    struct core *core = user;
    uint64_t now = monotonic_ns();
    ring_store(core->ring, RING_HEARTBEAT, now);
    if (core->realtime < 0) {
        __atomic_store_n(&runaway, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&core->realtime, become_realtime(), __ATOMIC_RELEASE);
    }
    if (flags & OUTPUT_UNDERFLOW)
        host_underflow(core, now);
    double delay = time->output_dac - time->current;
    uint64_t dac = now + core->latency_ns;
    if (delay > 0.0 && delay < LONGEST_LATENCY_S)
        dac = now + (uint64_t)(delay * 1e9);
    uint64_t events_before = core->event_head;
    size_t frame_bytes = core->channels * (core->int16 ? sizeof(int16_t) : sizeof(float));
    float mono[CHUNK];
    for (unsigned long done = 0; done < frames;) {
        uint32_t count = frames - done < CHUNK ? (uint32_t)(frames - done) : CHUNK;
        uint64_t count_ns = dac + (uint64_t)((double)done * core->ns_per_frame);
        render(core, mono, count, count_ns);
        tap_put(&core->tap, mono, count, core->taken + done, count_ns);
        spread(core, mono, count, (char *)output + done * frame_bytes);
        done += count;
    }
    __atomic_store_n(&core->taken, core->taken + frames, __ATOMIC_RELEASE);
    wake_interpreter(core, events_before);
    return 0;
}
