/* Records the monitor of the test speaker, with the time of every cycle: what a listener hears.
 *
 *   capture SAMPLES TIMES PORT     until SIGTERM; PORT is a pattern such as monitor_FL
 *
 * SAMPLES becomes float32 mono; TIMES holds a struct cycle for every cycle. Prints READY RATE when
 * it records, LOST at the end if cycles were missed. Run it under pw-jack. */
#define _GNU_SOURCE
#include <jack/jack.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SECONDS_MAX 900
#define FRAMES_MAX ((size_t)SECONDS_MAX * 48000)

struct cycle {
    uint64_t first_frame; /* in SAMPLES */
    uint64_t start_us;    /* CLOCK_MONOTONIC when the cycle began */
    uint64_t frames;
};

static jack_client_t *client;
static jack_port_t *input;
static float *samples;
static struct cycle *cycles;
static size_t frames_done, cycles_done;
static volatile sig_atomic_t stop;
static volatile int lost;

static int process(jack_nframes_t frames, void *unused) {
    (void)unused;
    jack_nframes_t current;
    jack_time_t start, next;
    float period;
    if (frames_done + frames > FRAMES_MAX)
        return 0;
    jack_get_cycle_times(client, &current, &start, &next, &period);
    cycles[cycles_done++] = (struct cycle){frames_done, start, frames};
    memcpy(samples + frames_done, jack_port_get_buffer(input, frames), frames * sizeof(float));
    frames_done += frames;
    return 0;
}

static int xrun(void *unused) {
    (void)unused;
    lost++;
    return 0;
}

static void end(int number) {
    (void)number;
    stop = 1;
}

static void *room(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(3);
    return memory;
}

static int connect_to(const char *pattern) {
    for (int try = 0; try < 200 && !stop; try++, usleep(20000)) {
        const char **ports =
            jack_get_ports(client, pattern, JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput);
        if (ports == NULL || ports[0] == NULL)
            continue;
        int failed = jack_connect(client, ports[0], jack_port_name(input));
        jack_free(ports);
        if (!failed)
            return 1;
    }
    return 0;
}

static void save(const char *path, const void *data, size_t size, size_t count) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, size, count, file) != count || fclose(file) != 0)
        exit(4);
}

int main(int count, char **arguments) {
    if (count != 4)
        return 2;
    signal(SIGTERM, end);
    client = jack_client_open("capture", JackNoStartServer, NULL);
    if (client == NULL)
        return 1;
    samples = room(FRAMES_MAX * sizeof *samples);
    cycles = room(FRAMES_MAX / 16 * sizeof *cycles);
    jack_set_process_callback(client, process, NULL);
    jack_set_xrun_callback(client, xrun, NULL);
    input = jack_port_register(client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    if (input == NULL || jack_activate(client) != 0 || !connect_to(arguments[3]))
        return 1;
    printf("READY %u\n", jack_get_sample_rate(client));
    fflush(stdout);
    while (!stop)
        usleep(10000);
    jack_deactivate(client);
    save(arguments[1], samples, sizeof *samples, frames_done);
    save(arguments[2], cycles, sizeof *cycles, cycles_done);
    printf("LOST %d\n", lost);
    jack_client_close(client);
    return 0;
}
