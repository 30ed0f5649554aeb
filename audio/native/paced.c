/* Sinks without a device: a thread that calls the callback at the pace of one, against absolute
 * deadlines, and writes what it gets into a WAV file or nowhere. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core.h"

#define WAV_HEADER_BYTES 44
#define WAV_DATA_BYTES_MAX 0xFFFFFF00u
#define LOST_TIME_NS 1000000000u
#define IDLE_SECONDS_KEPT 0.5

static void put_le32(unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static int write_all(int fd, const char *data, size_t size) {
    while (size > 0) {
        ssize_t count = write(fd, data, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno;
        data += count;
        size -= (size_t)count;
    }
    return 0;
}

/* Samples first, then the header: whenever this process dies, the header counts what is there. */
static int write_wav(struct core *core, const char *data, uint32_t frames) {
    uint32_t frame_bytes = core->channels * (uint32_t)sizeof(int16_t);
    uint64_t bytes = (core->wav_frames + frames) * frame_bytes;
    if (bytes > WAV_DATA_BYTES_MAX)
        return EFBIG;
    int error = write_all(core->wav_fd, data, (size_t)frames * frame_bytes);
    if (error != 0)
        return error;
    core->wav_frames += frames;
    unsigned char riff[4], size[4];
    put_le32(riff, (uint32_t)bytes + WAV_HEADER_BYTES - 8);
    put_le32(size, (uint32_t)bytes);
    if (pwrite(core->wav_fd, size, 4, 40) != 4 || pwrite(core->wav_fd, riff, 4, 4) != 4)
        return errno;
    return 0;
}

/* Silence for months is no recording: of each pause between utterances the head is kept. */
static int worth_writing(struct core *core, int sounded) {
    if (sounded)
        core->idle_frames = 0;
    else if (core->idle_frames < core->rate)
        core->idle_frames += core->period;
    return (double)core->idle_frames < IDLE_SECONDS_KEPT * core->rate;
}

static void sleep_until(uint64_t ns) {
    struct timespec until = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static void *pace(void *argument) {
    struct core *core = argument;
    char *buffer = calloc(core->period, core->channels * sizeof(float));
    if (buffer == NULL) {
        __atomic_store_n(&core->wav_errno, ENOMEM, __ATOMIC_RELEASE);
        return NULL;
    }
    uint64_t begin = monotonic_ns(), periods = 0;
    double period_ns = (double)core->period * core->ns_per_frame;
    while (!__atomic_load_n(&core->thread_stop, __ATOMIC_ACQUIRE)) {
        uint64_t deadline = begin + (uint64_t)((double)++periods * period_ns);
        uint64_t now = monotonic_ns();
        if (now > deadline + LOST_TIME_NS) {
            begin = now;
            periods = 0;
            continue;
        }
        /* This period sounds from the end of the one that is running. */
        double dac = now < deadline ? (double)(deadline - now) * 1e-9 : 1e-9;
        struct pa_time time = {0.0, 0.0, dac};
        uint64_t blocks = core->block_tail;
        audio_callback(NULL, buffer, core->period, &time, 0, core);
        int sounded = core->generation != 0 || core->block_tail != blocks;
        if (core->wav_fd >= 0 && worth_writing(core, sounded)) {
            int error = write_wav(core, buffer, core->period);
            if (error != 0) {
                __atomic_store_n(&core->wav_errno, error, __ATOMIC_RELEASE);
                break;
            }
        }
        sleep_until(deadline);
    }
    free(buffer);
    return NULL;
}

int paced_start(struct core *core, int wav_fd, uint64_t wav_frames) {
    core->wav_fd = wav_fd;
    core->wav_frames = wav_frames;
    core->wav_errno = 0;
    core->idle_frames = core->rate;
    core->thread_stop = 0;
    int error = pthread_create(&core->thread, NULL, pace, core);
    core->thread_runs = error == 0;
    return error;
}

void paced_stop(struct core *core) {
    if (!core->thread_runs)
        return;
    __atomic_store_n(&core->thread_stop, 1, __ATOMIC_RELEASE);
    pthread_join(core->thread, NULL);
    core->thread_runs = 0;
}
