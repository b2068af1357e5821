/* What tests of the library of rays share: a sentence that must hold, and the models that come with it. */
#ifndef RAY2MESH_MUST_H
#define RAY2MESH_MUST_H

#include "model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(int holds, const char *format, ...)
{
    va_list values;
    if (holds)
        return;
    va_start(values, format);
    fputs("ray2mesh: does not hold: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

static inline struct rays_model *read_model(const char *path)
{
    static struct rays_model model;
    char error[512];
    must(!rays_model_read(&model, path, error, sizeof error), "%s", error);
    return &model;
}

static inline struct rays_model *shipped(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.tvel", folder, name);
    return read_model(path);
}

#endif
