/* The states of the sound: what to play next, ramps wherever the wave would break. */
#include "core.h"
#include "ring.h"

#define EDGE 0.001f          /* -60 dBFS: below it a wave may begin or end without a ramp */
#define AUDIBLE 0.0031622776f /* -50 dBFS */
#define CLOCK_TOLERANCE_NS 5e6
#define CLOCK_CALLBACKS 4

struct output {
    float *samples;
    uint32_t done;
    uint32_t frames;
    uint64_t dac_ns;
    float gain;
};

static uint64_t time_at(const struct core *core, const struct output *out, uint32_t frame) {
    return out->dac_ns + (uint64_t)((double)frame * core->ns_per_frame);
}

static void tell(struct core *core, struct event event) {
    uint64_t tail = __atomic_load_n(&core->event_tail, __ATOMIC_ACQUIRE);
    if (core->event_head - tail == EVENTS) {
        __atomic_add_fetch(&core->events_lost, 1, __ATOMIC_RELAXED);
        return;
    }
    core->events[core->event_head % EVENTS] = event;
    __atomic_store_n(&core->event_head, core->event_head + 1, __ATOMIC_RELEASE);
}

static struct block *block_at(struct core *core, uint64_t index) {
    if (index == __atomic_load_n(&core->block_head, __ATOMIC_ACQUIRE))
        return NULL;
    return &core->blocks[index % BLOCKS];
}

static uint64_t position_at(const struct core *core, const struct block *block, uint32_t frame) {
    if (frame >= block->frames)
        return block->end;
    uint64_t position = block->origin + (block->index + frame) * block->source_rate / core->rate;
    return position < block->end ? position : block->end;
}

/* What the cursor has passed is played: its room goes back to the interpreter and the writer. */
static void commit(struct core *core) {
    while (core->block_tail != core->cursor) {
        struct block *block = &core->blocks[core->block_tail % BLOCKS];
        core->consumed = block->end;
        ring_store(core->ring, RING_PLAYED, block->played);
        ring_store(core->ring, RING_TAIL, block->tail);
        __atomic_store_n(&core->frames_out, core->frames_out + block->frames, __ATOMIC_RELEASE);
        __atomic_store_n(&core->block_tail, core->block_tail + 1, __ATOMIC_RELEASE);
    }
    core->tail_frame = core->cursor_frame;
    struct block *block = block_at(core, core->cursor);
    if (core->cursor_frame > 0 && block != NULL)
        core->consumed = position_at(core, block, core->cursor_frame);
}

static int is_dropped(const struct core *core, const struct block *block) {
    return block->dropped || ring_dropped(core->ring, block->generation);
}

/* Leaves out what was cancelled at the head of the queue; `ns` is when that is sure. */
static void skip_dropped(struct core *core, uint64_t ns) {
    struct block *block;
    while ((block = block_at(core, core->cursor)) != NULL && is_dropped(core, block)) {
        if (core->reported_drop != block->generation) {
            core->reported_drop = block->generation;
            uint64_t sounded = block->dropped ? block->end : position_at(core, block, 0);
            tell(core, (struct event){.kind = DROPPED,
                                      .generation = block->generation,
                                      .position = (int64_t)sounded,
                                      .ns = ns});
        }
        core->cursor++;
        core->cursor_frame = 0;
        commit(core);
    }
}

static int holds(const struct core *core) {
    return ring_load(core->ring, RING_PAUSED) != 0 ||
           __atomic_load_n(&core->closing, __ATOMIC_ACQUIRE);
}

/* When nothing is left to hear of a sound that stops at `ns`. */
static uint64_t silent_from(const struct core *core, uint64_t ns) {
    if (core->residue == 0.0f)
        return ns;
    double frames = ceil((double)(core->residue / core->residue_step));
    return ns + (uint64_t)(frames * core->ns_per_frame);
}

/* The queue was empty inside a generation, and the gap is over. */
static void tell_underrun(struct core *core, uint64_t ns) {
    core->underruns++;
    tell(core, (struct event){.kind = UNDERRUN,
                              .count = core->underruns,
                              .generation = core->generation,
                              .position = (int64_t)core->position,
                              .ns = ns,
                              .missing_ms = (double)core->missing_frames * 1e3 / core->rate});
}

static void pause_here(struct core *core, uint64_t ns) {
    core->cursor = core->block_tail;
    core->cursor_frame = core->tail_frame;
    core->envelope = 0.0f;
    core->envelope_step = 0.0f;
    core->state = PAUSED;
    core->pause_told = 1;
    tell(core, (struct event){.kind = PAUSED_AT,
                              .generation = core->generation,
                              .position = (int64_t)core->consumed,
                              .ns = silent_from(core, ns)});
}

/* The sounding generation is over by cancellation. */
static void finish_drop(struct core *core, uint64_t ns) {
    ns = silent_from(core, ns);
    core->cursor = core->block_tail;
    core->cursor_frame = core->tail_frame;
    core->reported_drop = core->generation;
    tell(core, (struct event){.kind = DROPPED,
                              .generation = core->generation,
                              .position = (int64_t)core->position,
                              .ns = ns});
    core->generation = 0;
    core->envelope = 0.0f;
    if (core->state != PAUSED)
        core->state = IDLE;
    skip_dropped(core, ns);
    if (core->state == IDLE && holds(core))
        pause_here(core, ns);
}

static void leave_residue(struct core *core) {
    if (fabsf(core->last_sample) > EDGE) {
        core->residue = core->last_sample;
        core->residue_step = core->last_sample * core->ramp_step;
    }
    core->last_sample = 0.0f;
}

/* One sample towards the device, with all that hangs on it. */
static void put(struct core *core, struct output *out, float sample) {
    core->last_sample = sample;
    if (core->residue != 0.0f) {
        sample += core->residue;
        float left = core->residue - core->residue_step;
        core->residue = left * core->residue > 0.0f ? left : 0.0f;
    }
    float y = level_apply(&core->level, sample, out->gain);
    if (!core->started && core->generation != 0 && fabsf(y) > AUDIBLE) {
        core->started = 1;
        tell(core, (struct event){.kind = STARTED,
                                  .generation = core->generation,
                                  .ns = core->first_sample_ns,
                                  .other_ns = time_at(core, out, out->done)});
    }
    out->samples[out->done++] = y;
}

/* Sinks that sleep take zeros for nothing to play. The last bit of 16, up or down at random, is
 * something: -90 dBFS, which nobody hears. */
static void put_noise(struct core *core, float *samples, uint32_t frames) {
    uint32_t x = core->noise_state != 0 ? core->noise_state : 1;
    for (uint32_t i = 0; i < frames; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        samples[i] = x & 1 ? core->noise : -core->noise;
    }
    core->noise_state = x;
}

static void put_silence(struct core *core, struct output *out, uint32_t frames) {
    while (frames > 0 && core->residue != 0.0f) {
        put(core, out, 0.0f);
        frames--;
    }
    if (core->noise > 0.0f)
        put_noise(core, out->samples + out->done, frames);
    else
        memset(out->samples + out->done, 0, frames * sizeof(float));
    out->done += frames;
    /* The gain may jump where nobody can hear it. */
    if (frames > 0)
        core->level.gain = out->gain;
    for (; frames >= 64; frames -= 64)
        core->level.peak *= 0.97f;
}

static void end_generation(struct core *core, uint64_t samples, uint64_t now_ns) {
    uint64_t end_ns = core->last_sample_ns != 0 ? core->last_sample_ns : now_ns;
    if (!core->started)
        tell(core, (struct event){.kind = STARTED,
                                  .generation = core->generation,
                                  .ns = core->first_sample_ns,
                                  .other_ns = end_ns});
    tell(core, (struct event){.kind = ENDED,
                              .generation = core->generation,
                              .position = (int64_t)samples,
                              .ns = end_ns});
    leave_residue(core);
    core->generation = 0;
    core->state = IDLE;
}

/* Tells that a generation begins, unless it was revoked: either the daemon sees here that it has
 * begun, or we see there that it must not. Both write first and look afterwards. */
static int may_begin(struct core *core, const struct block *block) {
    ring_store(core->ring, RING_BEGUN, block->generation);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return !ring_dropped(core->ring, block->generation);
}

static void begin_generation(struct core *core, const struct block *block, uint64_t now_ns) {
    core->generation = block->generation;
    core->started = 0;
    core->first_sample_ns = now_ns;
    core->last_sample_ns = 0;
    core->position = position_at(core, block, 0);
    core->anchor_due = 1;
    core->resuming = 0;
    core->state = PLAYING;
    core->envelope = block->frames > 0 && fabsf(block->samples[0]) > EDGE ? 0.0f : 1.0f;
    core->envelope_step = core->ramp_step;
}

static void end_starvation(struct core *core, const struct block *block, uint64_t now_ns) {
    core->state = PLAYING;
    if (block->frames == 0 || block->generation != core->generation)
        return; /* nothing was missing: only the mark of the end came late */
    tell_underrun(core, now_ns);
    core->anchor_due = 1;
    core->envelope = 0.0f;
    core->envelope_step = core->ramp_step;
}

static void anchor(struct core *core, const struct block *block, uint64_t ns) {
    core->anchor_due = 0;
    core->anchor_ns = ns;
    core->frames_since_anchor = 0;
    core->clock_off = 0;
    tell(core, (struct event){.kind = ANCHOR,
                              .generation = core->generation,
                              .position = (int64_t)position_at(core, block, core->cursor_frame),
                              .ns = ns});
}

/* Plays from one block until it or the room ends, or the envelope reaches nothing. */
static void play(struct core *core, struct output *out, const struct block *block) {
    if (core->anchor_due && core->cursor_frame < block->frames)
        anchor(core, block, time_at(core, out, out->done));
    uint32_t before = core->cursor_frame;
    while (core->cursor_frame < block->frames && out->done < out->frames) {
        float sample = block->samples[core->cursor_frame++];
        if (core->envelope_step != 0.0f) {
            float t = core->envelope;
            sample *= t * t * (3.0f - 2.0f * t);
            core->envelope += core->envelope_step;
            if (core->envelope >= 1.0f) {
                core->envelope = 1.0f;
                core->envelope_step = 0.0f;
            }
        }
        put(core, out, sample);
        if (core->envelope <= 0.0f)
            break;
    }
    core->frames_since_anchor += core->cursor_frame - before;
    if (core->cursor_frame > before)
        core->last_sample_ns = time_at(core, out, out->done - 1);
    core->position = position_at(core, block, core->cursor_frame);
}

/* What the daemon wants, looked up once a callback: the way of every stop and pause. */
static void obey(struct core *core, uint64_t ns) {
    int dropped = core->generation != 0 && ring_dropped(core->ring, core->generation);
    int hold = holds(core);
    if (hold && !dropped && core->state == STARVED)
        tell_underrun(core, ns);
    if (dropped && (core->state == PLAYING || core->state == PAUSING)) {
        commit(core);
        core->state = DROPPING;
        core->envelope_step = -core->ramp_step;
    } else if (dropped && core->state != DROPPING) {
        finish_drop(core, ns);
    } else if (hold && core->state == PLAYING) {
        core->state = PAUSING;
        core->envelope_step = -core->ramp_step;
    } else if (hold && (core->state == IDLE || core->state == STARVED ||
                        (core->state == PAUSED && !core->pause_told))) {
        pause_here(core, ns);
    } else if (!hold && core->state == PAUSING) {
        commit(core);
        core->state = PLAYING;
        core->envelope_step = core->ramp_step;
    } else if (!hold && core->state == PAUSED) {
        core->state = core->generation != 0 ? PLAYING : IDLE;
        core->envelope_step = core->ramp_step;
        core->anchor_due = core->resuming = core->generation != 0;
        core->pause_told = 0;
    }
}

static void step_idle(struct core *core, struct output *out) {
    uint64_t now_ns = time_at(core, out, out->done);
    skip_dropped(core, now_ns);
    struct block *block = block_at(core, core->cursor);
    if (block == NULL)
        put_silence(core, out, out->frames - out->done);
    else if (may_begin(core, block)) /* else it is left out at the next step */
        begin_generation(core, block, now_ns);
}

static void step_playing(struct core *core, struct output *out) {
    struct block *block = block_at(core, core->cursor);
    uint64_t now_ns = time_at(core, out, out->done);
    if (block == NULL && core->resuming) {
        put_silence(core, out, out->frames - out->done); /* the queue was not filled again yet */
        return;
    }
    if (block == NULL) {
        core->state = STARVED;
        core->missing_frames = 0;
        leave_residue(core);
        return;
    }
    if (block->generation != core->generation) {
        end_generation(core, core->position, now_ns);
        return;
    }
    if (block->dropped) {
        finish_drop(core, now_ns);
        return;
    }
    core->resuming = 0;
    play(core, out, block);
    if (core->cursor_frame == block->frames) {
        core->cursor++;
        core->cursor_frame = 0;
        if (block->last)
            end_generation(core, block->end, time_at(core, out, out->done));
    }
    commit(core);
}

static void step_starved(struct core *core, struct output *out) {
    struct block *block = block_at(core, core->cursor);
    if (block != NULL) {
        end_starvation(core, block, time_at(core, out, out->done));
        return;
    }
    core->missing_frames += out->frames - out->done;
    put_silence(core, out, out->frames - out->done);
}

static void ramp_over(struct core *core, struct output *out) {
    if (core->envelope > 0.0f)
        leave_residue(core);
    core->last_sample = 0.0f;
    uint64_t ns = time_at(core, out, out->done);
    if (core->state == PAUSING) {
        pause_here(core, ns);
        return;
    }
    commit(core);
    finish_drop(core, ns);
}

/* PAUSING and DROPPING: on with the wave under a falling envelope, as far as it is there. */
static void step_ramp(struct core *core, struct output *out) {
    struct block *block = block_at(core, core->cursor);
    if (block == NULL || block->generation != core->generation || block->dropped) {
        ramp_over(core, out);
        return;
    }
    play(core, out, block);
    int over = core->envelope <= 0.0f;
    if (core->cursor_frame == block->frames) {
        over = over || block->last;
        core->cursor++;
        core->cursor_frame = 0;
    }
    if (over)
        ramp_over(core, out);
    else if (core->state == DROPPING)
        commit(core);
}

/* The device's clock may drift or jump against the anchor that was told last. */
static void check_clock(struct core *core, uint64_t dac_ns) {
    if (core->state != PLAYING || core->anchor_due)
        return;
    double expected = (double)core->frames_since_anchor * core->ns_per_frame;
    double off = (double)(int64_t)(dac_ns - core->anchor_ns) - expected;
    core->clock_off = fabs(off) > CLOCK_TOLERANCE_NS ? core->clock_off + 1 : 0;
    if (core->clock_off >= CLOCK_CALLBACKS)
        core->anchor_due = 1;
}

void render(struct core *core, float *samples, uint32_t frames, uint64_t dac_ns) {
    struct output out = {samples, 0, frames, dac_ns, ring_gain(core->ring)};
    if (core->wake_frames > 0) {
        uint32_t waking = core->wake_frames < frames ? (uint32_t)core->wake_frames : frames;
        core->wake_frames -= waking;
        put_silence(core, &out, waking);
        if (out.done == frames) {
            reap(core, dac_ns); /* for what is cancelled meanwhile there is no device yet */
            return;
        }
    }
    check_clock(core, dac_ns);
    obey(core, dac_ns);
    while (out.done < frames) {
        switch (core->state) {
        case IDLE:
            step_idle(core, &out);
            break;
        case PLAYING:
            step_playing(core, &out);
            break;
        case STARVED:
            step_starved(core, &out);
            break;
        case PAUSING:
        case DROPPING:
            step_ramp(core, &out);
            break;
        case PAUSED:
            if (core->generation == 0)
                skip_dropped(core, dac_ns);
            put_silence(core, &out, frames - out.done);
            break;
        }
    }
}

void reap(struct core *core, uint64_t now_ns) {
    if (core->generation != 0 && ring_dropped(core->ring, core->generation))
        finish_drop(core, now_ns);
    if (core->generation == 0)
        skip_dropped(core, now_ns);
    if (holds(core) && !core->pause_told)
        pause_here(core, now_ns);
}

void detach(struct core *core) {
    if (core->state == STARVED)
        tell_underrun(core, monotonic_ns());
    core->block_head = core->block_tail = core->cursor = 0;
    core->cursor_frame = core->tail_frame = 0;
    core->frames_in = core->frames_out = 0;
    core->refill = 0;
    core->envelope = core->envelope_step = 0.0f;
    core->residue = core->last_sample = 0.0f;
    core->pause_told = core->pause_told && core->state == PAUSED;
    core->state = core->generation != 0 || core->pause_told ? PAUSED : IDLE;
}

void host_underflow(struct core *core, uint64_t now_ns) {
    if (core->generation == 0 || core->state == PAUSED)
        return;
    core->underruns++;
    core->host_underruns++;
    if (now_ns - core->host_underflow_ns < 100000000u)
        return; /* counted; told at most ten times a second */
    core->host_underflow_ns = now_ns;
    tell(core, (struct event){.kind = UNDERRUN,
                              .count = core->underruns,
                              .generation = core->generation,
                              .position = -1,
                              .ns = now_ns});
}
