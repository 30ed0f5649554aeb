/* `Core`: the audio thread's data as a Python object. Everything here runs in the interpreter. */
#include "python.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "ring.h"

typedef struct {
    PyObject_HEAD
    Py_buffer ring;
    struct core *core;
} CoreObject;

static struct core *core_of(PyObject *self) { return ((CoreObject *)self)->core; }

static PyObject *core_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    PyObject *memory;
    int wake_fd;
    if (!PyArg_ParseTuple(args, "Oi:Core", &memory, &wake_fd))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    CoreObject *self = (CoreObject *)allocate(type, 0);
    if (self == NULL)
        return NULL;
    self->core = calloc(1, sizeof *self->core);
    if (self->core == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    if (PyObject_GetBuffer(memory, &self->ring, PyBUF_WRITABLE) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->ring.len < RING_HEADER_BYTES) {
        Py_DECREF(self);
        PyErr_SetString(PyExc_ValueError, "the memory of the ring is shorter than its header");
        return NULL;
    }
    self->core->ring = self->ring.buf;
    self->core->wake_fd = wake_fd;
    self->core->wav_fd = -1;
    self->core->realtime = -1;
    return (PyObject *)self;
}

static void core_dealloc(PyObject *object) {
    CoreObject *self = (CoreObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->core != NULL) {
        paced_stop(self->core);
        free(self->core->tap.slots);
        free(self->core);
    }
    if (self->ring.buf != NULL)
        PyBuffer_Release(&self->ring);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *core_configure(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"rate",    "channels",   "period_frames", "ramp_ms",
                            "lead_ms", "latency_ms", "int16",         "speed",
                            "wake_ms", "noise",      NULL};
    struct core *core = core_of(self);
    unsigned int rate, channels, period;
    double ramp_ms, lead_ms, latency_ms, speed, wake_ms = 0.0;
    int int16, noise = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "IIIdddpd|dp:configure", names, &rate,
                                     &channels, &period, &ramp_ms, &lead_ms, &latency_ms, &int16,
                                     &speed, &wake_ms, &noise))
        return NULL;
    if (rate < 1000 || rate > 768000 || channels < 1 || channels > 64 || period < 1 ||
        period > PERIOD_FRAMES_MAX || !(ramp_ms >= 0.0 && ramp_ms <= 1000.0) ||
        !(speed > 0.0 && speed <= 10000.0) || !(wake_ms >= 0.0 && wake_ms <= 60000.0)) {
        PyErr_SetString(PyExc_ValueError,
                        "no device has such a rate, period, ramp, speed or time to wake");
        return NULL;
    }
    core->rate = rate;
    core->channels = channels;
    core->period = period;
    core->int16 = (uint32_t)int16;
    core->ns_per_frame = 1e9 / (rate * speed);
    core->latency_ns = (uint64_t)(latency_ms * 1e6);
    double ramp_frames = ramp_ms * rate / 1000.0;
    core->ramp_step = (float)(1.0 / (ramp_frames < 1.0 ? 1.0 : ramp_frames));
    core->low_water = (uint64_t)(lead_ms * rate / 1000.0) + period;
    core->wake_frames = (uint64_t)(wake_ms * speed * rate / 1000.0);
    core->noise = noise ? NOISE_PEAK : 0.0f;
    level_set_rate(&core->level, rate);
    core->level.gain = ring_gain(core->ring);
    core->realtime = -1;
    core->taken = 0;
    detach(core);
    Py_RETURN_NONE;
}

static PyObject *core_push(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"samples", "generation", "origin", "index", "end",  "source_rate",
                            "tail",    "played",     "last",   "dropped", NULL};
    struct core *core = core_of(self);
    Py_buffer samples;
    unsigned long long generation, origin, index, end, tail, played;
    unsigned int source_rate;
    int last, dropped;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*KKKKIKKpp:push", names, &samples,
                                     &generation, &origin, &index, &end, &source_rate, &tail,
                                     &played, &last, &dropped))
        return NULL;
    uint64_t block_tail = __atomic_load_n(&core->block_tail, __ATOMIC_ACQUIRE);
    int fits = samples.len % 4 == 0 && samples.len <= BLOCK_FRAMES * 4 && source_rate > 0;
    if (!fits || core->block_head - block_tail == BLOCKS) {
        PyBuffer_Release(&samples);
        PyErr_SetString(PyExc_ValueError, fits ? "the queue of blocks is full"
                                               : "a block takes up to 256 float32 samples");
        return NULL;
    }
    struct block *block = &core->blocks[core->block_head % BLOCKS];
    block->generation = generation;
    block->origin = origin;
    block->index = index;
    block->end = end;
    block->source_rate = source_rate;
    block->tail = tail;
    block->played = played;
    block->last = (uint32_t)last;
    block->dropped = (uint32_t)dropped;
    block->frames = (uint32_t)(samples.len / 4);
    memcpy(block->samples, samples.buf, (size_t)samples.len);
    PyBuffer_Release(&samples);
    __atomic_store_n(&core->frames_in, core->frames_in + block->frames, __ATOMIC_RELEASE);
    __atomic_store_n(&core->block_head, core->block_head + 1, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

static PyObject *core_ask_refill(PyObject *self, PyObject *ignored) {
    (void)ignored;
    __atomic_store_n(&core_of(self)->refill, 1, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

static PyObject *core_events(PyObject *self, PyObject *ignored) {
    (void)ignored;
    struct core *core = core_of(self);
    PyObject *list = PyList_New(0);
    uint64_t head = __atomic_load_n(&core->event_head, __ATOMIC_ACQUIRE);
    while (list != NULL && core->event_tail != head) {
        const struct event *event = &core->events[core->event_tail % EVENTS];
        PyObject *item =
            Py_BuildValue("(IKLKKId)", event->kind, (unsigned long long)event->generation,
                          (long long)event->position, (unsigned long long)event->ns,
                          (unsigned long long)event->other_ns, event->count, event->missing_ms);
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
        __atomic_store_n(&core->event_tail, core->event_tail + 1, __ATOMIC_RELEASE);
    }
    return list;
}

static PyObject *core_render(PyObject *self, PyObject *args) {
    struct core *core = core_of(self);
    unsigned int frames;
    unsigned long long dac_ns;
    if (!PyArg_ParseTuple(args, "IK:render", &frames, &dac_ns))
        return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)frames * 4);
    if (bytes != NULL)
        render(core, (float *)PyBytes_AsString(bytes), frames, dac_ns);
    return bytes;
}

static PyObject *core_start_paced(PyObject *self, PyObject *args) {
    int fd;
    unsigned long long frames;
    if (!PyArg_ParseTuple(args, "iK:start_paced", &fd, &frames))
        return NULL;
    int error = paced_start(core_of(self), fd, frames);
    return PyLong_FromLong(error);
}

static PyObject *core_stop_paced(PyObject *self, PyObject *ignored) {
    (void)ignored;
    Py_BEGIN_ALLOW_THREADS
    paced_stop(core_of(self));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *core_detach(PyObject *self, PyObject *ignored) {
    (void)ignored;
    detach(core_of(self));
    Py_RETURN_NONE;
}

static PyObject *core_reap(PyObject *self, PyObject *args) {
    unsigned long long now_ns;
    if (!PyArg_ParseTuple(args, "K:reap", &now_ns))
        return NULL;
    reap(core_of(self), now_ns);
    Py_RETURN_NONE;
}

static PyObject *core_hold(PyObject *self, PyObject *ignored) {
    (void)ignored;
    __atomic_store_n(&core_of(self)->closing, 1, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

static PyObject *core_place(PyObject *self, PyObject *ignored) {
    (void)ignored;
    struct core *core = core_of(self);
    return Py_BuildValue("(KK)", (unsigned long long)core->generation,
                         (unsigned long long)core->consumed);
}

static PyObject *core_listen(PyObject *self, PyObject *listening) {
    int wanted = PyObject_IsTrue(listening);
    if (wanted < 0)
        return NULL;
    if (!tap_listen(&core_of(self)->tap, wanted))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *core_tapped(PyObject *self, PyObject *ignored) {
    (void)ignored;
    struct tap *tap = &core_of(self)->tap;
    PyObject *list = PyList_New(0);
    const struct slot *slot;
    while (list != NULL && (slot = tap_first(tap)) != NULL) {
        PyObject *item = Py_BuildValue("(KKy#)", (unsigned long long)slot->index,
                                       (unsigned long long)slot->dac_ns,
                                       (const char *)slot->samples,
                                       (Py_ssize_t)(slot->frames * sizeof(float)));
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
        tap_pop(tap);
    }
    return list;
}

static PyObject *get_address(PyObject *self, void *ignored) {
    (void)ignored;
    return PyLong_FromVoidPtr(core_of(self));
}

static PyObject *get_queued(PyObject *self, void *ignored) {
    (void)ignored;
    struct core *core = core_of(self);
    uint64_t out = __atomic_load_n(&core->frames_out, __ATOMIC_ACQUIRE);
    return PyLong_FromUnsignedLongLong(core->frames_in - out);
}

static PyObject *get_room(PyObject *self, void *ignored) {
    (void)ignored;
    struct core *core = core_of(self);
    uint64_t tail = __atomic_load_n(&core->block_tail, __ATOMIC_ACQUIRE);
    return PyLong_FromUnsignedLongLong(BLOCKS - (core->block_head - tail));
}

/* Nothing sounds and, because of `hold`, nothing will. */
static PyObject *get_silent(PyObject *self, void *ignored) {
    (void)ignored;
    struct core *core = core_of(self);
    return PyBool_FromLong(__atomic_load_n(&core->state, __ATOMIC_ACQUIRE) == PAUSED &&
                           core->residue == 0.0f);
}

static PyObject *get_realtime(PyObject *self, void *ignored) {
    (void)ignored;
    return PyBool_FromLong(__atomic_load_n(&core_of(self)->realtime, __ATOMIC_ACQUIRE) > 0);
}

static PyObject *get_taken(PyObject *self, void *ignored) {
    (void)ignored;
    return PyLong_FromUnsignedLongLong(
        __atomic_load_n(&core_of(self)->taken, __ATOMIC_ACQUIRE));
}

static PyObject *get_runaway(PyObject *self, void *ignored) {
    (void)self;
    (void)ignored;
    return PyBool_FromLong(__atomic_load_n(&runaway, __ATOMIC_ACQUIRE));
}

static PyObject *get_underruns(PyObject *self, void *ignored) {
    (void)ignored;
    return PyLong_FromUnsignedLong(__atomic_load_n(&core_of(self)->underruns, __ATOMIC_RELAXED));
}

static PyObject *get_host_underruns(PyObject *self, void *ignored) {
    (void)ignored;
    uint32_t count = __atomic_load_n(&core_of(self)->host_underruns, __ATOMIC_RELAXED);
    return PyLong_FromUnsignedLong(count);
}

static PyObject *get_wav_errno(PyObject *self, void *ignored) {
    (void)ignored;
    return PyLong_FromLong(__atomic_load_n(&core_of(self)->wav_errno, __ATOMIC_ACQUIRE));
}

static PyObject *get_events_lost(PyObject *self, void *ignored) {
    (void)ignored;
    return PyLong_FromUnsignedLongLong(
        __atomic_load_n(&core_of(self)->events_lost, __ATOMIC_RELAXED));
}

static PyObject *get_frames_copied(PyObject *self, void *ignored) {
    (void)ignored;
    return PyLong_FromUnsignedLongLong(
        __atomic_load_n(&core_of(self)->tap.copied, __ATOMIC_RELAXED));
}

static PyObject *get_frames_dropped(PyObject *self, void *ignored) {
    (void)ignored;
    return PyLong_FromUnsignedLongLong(
        __atomic_load_n(&core_of(self)->tap.dropped, __ATOMIC_RELAXED));
}

static PyMethodDef methods[] = {
    {"configure", (PyCFunction)(void (*)(void))core_configure, METH_VARARGS | METH_KEYWORDS, NULL},
    {"push", (PyCFunction)(void (*)(void))core_push, METH_VARARGS | METH_KEYWORDS, NULL},
    {"ask_refill", core_ask_refill, METH_NOARGS, NULL},
    {"events", core_events, METH_NOARGS, NULL},
    {"render", core_render, METH_VARARGS, NULL},
    {"start_paced", core_start_paced, METH_VARARGS, NULL},
    {"stop_paced", core_stop_paced, METH_NOARGS, NULL},
    {"detach", core_detach, METH_NOARGS, NULL},
    {"reap", core_reap, METH_VARARGS, NULL},
    {"hold", core_hold, METH_NOARGS, NULL},
    {"place", core_place, METH_NOARGS, NULL},
    {"listen", core_listen, METH_O, NULL},
    {"tapped", core_tapped, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"address", get_address, NULL, NULL, NULL},
    {"queued", get_queued, NULL, NULL, NULL},
    {"room", get_room, NULL, NULL, NULL},
    {"silent", get_silent, NULL, NULL, NULL},
    {"realtime", get_realtime, NULL, NULL, NULL},
    {"taken", get_taken, NULL, NULL, NULL},
    {"runaway", get_runaway, NULL, NULL, NULL},
    {"underruns", get_underruns, NULL, NULL, NULL},
    {"host_underruns", get_host_underruns, NULL, NULL, NULL},
    {"wav_errno", get_wav_errno, NULL, NULL, NULL},
    {"events_lost", get_events_lost, NULL, NULL, NULL},
    {"frames_copied", get_frames_copied, NULL, NULL, NULL},
    {"frames_dropped", get_frames_dropped, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Core(ring_memory, wake_fd, /)\n--\n\nThe data of the audio thread."},
    {Py_tp_new, core_new},
    {Py_tp_dealloc, core_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec core_type_spec = {
    .name = "utterd.audio._callback.Core",
    .basicsize = sizeof(CoreObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
