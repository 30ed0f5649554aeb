/* The Python face of the player's C part: ordered loads and stores for the shared ring. */
#define _GNU_SOURCE
#include "python.h"

#include <sys/mman.h>

#include "core.h"

extern PyType_Spec core_type_spec;

static PyObject *word_at(PyObject *object, Py_ssize_t offset, int writable, Py_buffer *view,
                         uint64_t **word) {
    if (PyObject_GetBuffer(object, view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0)
        return NULL;
    if (offset < 0 || offset % 8 != 0 || offset > view->len - 8 ||
        (uintptr_t)view->buf % 8 != 0) {
        PyBuffer_Release(view);
        PyErr_Format(PyExc_ValueError, "no aligned 64-bit word at byte %zd of the buffer", offset);
        return NULL;
    }
    *word = (uint64_t *)((char *)view->buf + offset);
    return Py_None;
}

static PyObject *load(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object;
    Py_ssize_t offset;
    Py_buffer view;
    uint64_t *word;
    if (!PyArg_ParseTuple(args, "On:load", &object, &offset) ||
        word_at(object, offset, 0, &view, &word) == NULL)
        return NULL;
    uint64_t value = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *store(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object, *number;
    Py_ssize_t offset;
    Py_buffer view;
    uint64_t *word;
    if (!PyArg_ParseTuple(args, "OnO:store", &object, &offset, &number))
        return NULL;
    uint64_t value = PyLong_AsUnsignedLongLong(number);
    if (value == (uint64_t)-1 && PyErr_Occurred())
        return NULL;
    if (word_at(object, offset, 1, &view, &word) == NULL)
        return NULL;
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

/* Pages are locked as they are touched, so nothing grows by it. */
static PyObject *lock_memory(PyObject *self, PyObject *ignored) {
    (void)self;
    (void)ignored;
    return PyBool_FromLong(mlockall(MCL_CURRENT | MCL_ONFAULT) == 0);
}

static PyMethodDef functions[] = {
    {"load", load, METH_VARARGS,
     "load(buffer, offset, /)\n--\n\nRead the 64-bit word at a byte offset, sequentially consistent."},
    {"store", store, METH_VARARGS,
     "store(buffer, offset, value, /)\n--\n\nWrite the 64-bit word at a byte offset, "
     "sequentially consistent."},
    {"lock_memory", lock_memory, METH_NOARGS,
     "lock_memory()\n--\n\nKeep this process's memory from being paged out; tell whether it is."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "utterd.audio._callback",
    .m_doc = "The player's C part: what runs in the audio thread, and ordered memory access.",
    .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__callback(void) {
    PyObject *module = PyModule_Create(&definition);
    PyObject *type = PyType_FromSpec(&core_type_spec);
    /* The address goes to PortAudio, which calls it without the interpreter. */
    PyObject *address = PyLong_FromVoidPtr((void *)(uintptr_t)audio_callback);
    if (module == NULL || type == NULL || address == NULL ||
        PyModule_AddObjectRef(module, "Core", type) < 0 ||
        PyModule_AddObjectRef(module, "CALLBACK", address) < 0 ||
        PyModule_AddIntConstant(module, "BLOCK_FRAMES", BLOCK_FRAMES) < 0)
        Py_CLEAR(module);
    Py_XDECREF(type);
    Py_XDECREF(address);
    return module;
}
