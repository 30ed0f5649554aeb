/* Python.h as this extension uses it: the stable ABI of 3.11, sizes as Py_ssize_t. */
#ifndef UTTERD_PYTHON_H
#define UTTERD_PYTHON_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#endif
