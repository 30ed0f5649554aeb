/* What the audio thread works on. One thread fills the queue of blocks and empties the queue of
 * events (the interpreter's), another does the opposite (the audio thread); neither ever waits. */
#ifndef UTTERD_CORE_H
#define UTTERD_CORE_H
#include <pthread.h>
#include <stdint.h>

#include "level.h"
#include "tap.h"

#define BLOCK_FRAMES 256
#define BLOCKS 128
#define EVENTS 1024
#define PERIOD_FRAMES_MAX 16384

/* Mono samples at the rate of the device, and where in the utterance and the ring they stand. */
struct block {
    uint64_t generation;
    uint64_t origin;      /* source position of the first sample of this run of the resampler */
    uint64_t index;       /* number of the block's first sample in that run, at the device's rate */
    uint64_t end;         /* source position behind the block */
    uint64_t tail;        /* indices of the shared ring once the block is played */
    uint64_t played;
    uint32_t source_rate; /* Hz */
    uint32_t frames;
    uint32_t last;        /* nothing follows in the generation */
    uint32_t dropped;     /* stands for records that were cancelled before they came here */
    float samples[BLOCK_FRAMES];
};

enum event_kind { ANCHOR = 1, STARTED, ENDED, DROPPED, UNDERRUN, PAUSED_AT };

struct event {
    uint32_t kind;
    uint32_t count;
    uint64_t generation;
    int64_t position;
    uint64_t ns;
    uint64_t other_ns;
    double missing_ms;
};

/*            nothing to play: IDLE
 *  IDLE      block -> PLAYING · hold -> PAUSED
 *  PLAYING   end -> IDLE · queue empty -> STARVED · hold -> PAUSING · drop -> DROPPING
 *  STARVED   block -> PLAYING · hold -> PAUSED · drop -> IDLE
 *  PAUSING   ramp over -> PAUSED · hold over -> PLAYING · drop -> DROPPING
 *  PAUSED    hold over -> PLAYING or IDLE · drop -> PAUSED without a generation
 *  DROPPING  ramp over -> IDLE
 */
enum state { IDLE, PLAYING, STARVED, PAUSING, PAUSED, DROPPING };

struct core {
    /* Set while no callback runs. */
    char *ring;
    int wake_fd;
    uint32_t rate;
    uint32_t channels;
    uint32_t period;
    uint32_t int16;
    double ns_per_frame;
    uint64_t latency_ns; /* used where the host gives no time for its buffer */
    float ramp_step;
    uint64_t low_water; /* frames in the queue */
    float noise;        /* peak of the noise that silence is filled with; 0 for none */

    /* Queue of blocks: free-running counts. */
    uint64_t block_head; /* interpreter */
    uint64_t block_tail; /* audio thread */
    uint64_t frames_in;  /* interpreter */
    uint64_t frames_out; /* audio thread */
    uint32_t refill;     /* interpreter: wake me below low_water; audio thread: done */
    struct block blocks[BLOCKS];

    /* Queue of events. */
    uint64_t event_head; /* audio thread */
    uint64_t event_tail; /* interpreter */
    uint64_t events_lost;
    struct event events[EVENTS];

    uint32_t closing; /* interpreter: hold for good */
    uint64_t taken;   /* audio thread: frames the device has taken since `configure` */
    int32_t realtime; /* audio thread: -1 not tried, 0 refused, 1 granted */

    /* The audio thread's own. */
    enum state state;
    uint64_t generation; /* that sounds; 0 for none */
    uint64_t cursor;     /* block that is read; ahead of block_tail only while PAUSING */
    uint32_t cursor_frame;
    uint32_t tail_frame; /* frames of the block at block_tail that are played */
    uint64_t position;   /* source position behind the last sample that sounded */
    uint64_t consumed;   /* source position up to which sound won't be repeated */
    uint64_t reported_drop;
    int started;
    int pause_told;
    int anchor_due;
    int resuming;        /* nothing was played yet since a pause or another device */
    uint64_t first_sample_ns;
    uint64_t last_sample_ns;
    float envelope;      /* 0 to 1, linear in time; shaped when used */
    float envelope_step;
    float last_sample;   /* before gain */
    float residue;       /* decays to nothing where sound stopped in mid-wave */
    float residue_step;
    struct level level;
    uint64_t missing_frames;
    uint32_t underruns;
    uint32_t host_underruns; /* those of them that the host has told */
    uint64_t host_underflow_ns;
    uint64_t wake_frames; /* left until the sink is awake and sound may begin */
    uint32_t noise_state;
    uint64_t anchor_ns;
    uint64_t frames_since_anchor;
    int clock_off;       /* callbacks in a row that disagree with the anchor */

    struct tap tap;

    /* The paced sinks. */
    pthread_t thread;
    int thread_runs;
    uint32_t thread_stop;
    int wav_fd; /* -1 for none */
    int32_t wav_errno;
    uint64_t wav_frames;
    uint64_t idle_frames;
};

/* Fills `frames` mono samples of which the first reaches the DAC at `dac_ns`. */
void render(struct core *core, float *out, uint32_t frames, uint64_t dac_ns);
/* What must happen although no device takes samples: tell of cancelled generations, free them. */
void reap(struct core *core, uint64_t now_ns);
/* Forget the queue, keep the place: the device is gone and another will go on there. */
void detach(struct core *core);
void host_underflow(struct core *core, uint64_t now_ns);

struct pa_time {
    double input_adc;
    double current;
    double output_dac;
};
/* A PaStreamCallback. */
int audio_callback(const void *input, void *output, unsigned long frames,
                   const struct pa_time *time, unsigned long flags, void *core);

/* Returns an errno. The file holds `wav_frames` already and stands at its end. */
int paced_start(struct core *core, int wav_fd, uint64_t wav_frames);
void paced_stop(struct core *core);

/* A real-time thread of this process ran without a pause and was made an ordinary one. */
extern int runaway;

uint64_t monotonic_ns(void);
#endif
