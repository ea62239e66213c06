"""A C extension that can be made faster: `_fast`, with a slow `total` and a `never` that nothing calls."""

SLOW_C = """
#include <Python.h>
static PyObject *total(PyObject *self, PyObject *argument) {
    long n = PyLong_AsLong(argument);
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return PyLong_FromLong(sum);
}
static PyObject *never(PyObject *self, PyObject *argument) {
    return PyLong_FromLong(1);
}
static PyMethodDef methods[] = {{"total", total, METH_O, ""}, {"never", never, METH_O, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", NULL, -1, methods};
PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
"""
FAST_C = SLOW_C.replace("for (long i = 0; i < n; i++) sum += i;", "sum = n * (n - 1) / 2;")
"""Without the loop: what a volatile variable costs in it, some processors have for nothing."""
