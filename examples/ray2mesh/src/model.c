/* Reads .tvel files and cuts layers. */
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Thicker layers are cut, each with speeds interpolated linearly in depth, as programs that read .tvel do: a
 * power of the radius differs from a line by up to b (b - 1) / 8 of (thickness / radius)^2. */
#ifndef THICKEST_KM
#define THICKEST_KM 26.0
#endif

#define MAX_ROWS 512

struct row {
    double depth, speed[2];
    int line;
};

static int complain(char *error, int bytes, const char *path, int line, const char *what)
{
    if (line)
        snprintf(error, bytes, "%s:%d: %s", path, line, what);
    else
        snprintf(error, bytes, "%s: %s", path, what);
    return -1;
}

static const char *row_fault(const struct row *row, const struct row *before)
{
    if (!isfinite(row->depth) || !isfinite(row->speed[0]) || !isfinite(row->speed[1]))
        return "not a finite number";
    if (row->speed[RAYS_P] <= 0 || row->speed[RAYS_S] < 0)
        return "the speed of P must be above 0, that of S at least 0";
    if (!before)
        return row->depth == 0 ? NULL : "the first depth must be 0 km";
    if (row->depth < before->depth)
        return "depths must not go up";
    /* A layer is fluid or solid as a whole. */
    if (row->depth > before->depth && (row->speed[RAYS_S] == 0) != (before->speed[RAYS_S] == 0))
        return "the speed of S becomes 0, or begins, inside a layer: the depth must stand twice";
    return NULL;
}

/* The rows of a file, their number, or -1. */
static int read_rows(struct row *rows, const char *path, char *error, int bytes)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return complain(error, bytes, path, 0, "the Earth model cannot be opened");
    char text[512];
    int count = 0, line = 0, status = 0;
    while (!status && fgets(text, sizeof text, file)) {
        if (++line <= 2 || text[strspn(text, " \t\r\n")] == 0)
            continue;
        if (count == MAX_ROWS) {
            status = complain(error, bytes, path, line, "more than 512 depths");
            break;
        }
        struct row *row = &rows[count];
        row->line = line;
        if (sscanf(text, "%lf %lf %lf", &row->depth, &row->speed[0], &row->speed[1]) != 3)
            status = complain(error, bytes, path, line, "no depth, speed of P and speed of S");
        else {
            const char *fault = row_fault(row, count ? row - 1 : NULL);
            if (fault)
                status = complain(error, bytes, path, line, fault);
        }
        count++;
    }
    fclose(file);
    if (!status && count < 2)
        status = complain(error, bytes, path, 0, "fewer than two depths");
    return status ? status : count;
}

/* The layers between two rows; 0, or -1 if there is no room. */
static int add(struct rays_model *model, const struct row *above, const struct row *below)
{
    double thickness = below->depth - above->depth;
    int pieces = (int)ceil(thickness / THICKEST_KM);
    for (int i = 0; i < pieces; i++) {
        double r[2], part[2] = {(double)i / pieces, (double)(i + 1) / pieces};
        if (model->layers == RAYS_MAX_LAYERS)
            return -1;
        for (int end = 0; end < 2; end++)
            r[end] = model->radius_km - (above->depth + thickness * part[end]);
        if (i == pieces - 1)
            r[1] = model->radius_km - below->depth;
        for (int wave = 0; wave < 2; wave++) {
            double v = above->speed[wave], change = below->speed[wave] - v;
            struct rays_layer *layer = &model->layer[wave][model->layers];
            if (v == 0)
                *layer = (struct rays_layer){.r_top = r[0], .r_bottom = r[1]};
            else
                rays_layer_init(layer, r[0], r[1], v + change * part[0],
                                i == pieces - 1 ? v + change : v + change * part[1]);
        }
        model->layers++;
    }
    return 0;
}

int rays_model_read(struct rays_model *model, const char *path, char *error, int error_bytes)
{
    struct row rows[MAX_ROWS];
    int count = read_rows(rows, path, error, error_bytes);
    if (count < 2)
        return -1;
    memset(model, 0, sizeof *model);
    model->radius_km = rows[count - 1].depth;
    if (model->radius_km <= 0)
        return complain(error, error_bytes, path, rows[count - 1].line,
                        "the last depth must be that of the centre");
    int region = RAYS_MANTLE;
    for (int i = 1; i < count; i++) {
        if (rows[i].depth == rows[i - 1].depth)
            continue;
        /* Even regions are solid. */
        if ((rows[i].speed[RAYS_S] == 0) != (region == RAYS_OUTER_CORE)) {
            if (i == 1)
                return complain(error, error_bytes, path, rows[0].line,
                                "the surface is fluid: leave out the ocean");
            if (++region == RAYS_REGIONS)
                return complain(error, error_bytes, path, rows[i].line, "more than one fluid shell");
            model->first[region] = model->layers;
        }
        if (add(model, &rows[i - 1], &rows[i]))
            return complain(error, error_bytes, path, rows[i].line, "more than 1024 layers");
    }
    while (region < RAYS_REGIONS)
        model->first[++region] = model->layers;
    return 0;
}

int rays_model_cut(struct rays_model *model, double depth_km)
{
    double r = model->radius_km - depth_km;
    for (int i = 0; i < model->first[RAYS_OUTER_CORE]; i++) {
        if (r == model->layer[RAYS_P][i].r_top)
            return i;
        if (r <= model->layer[RAYS_P][i].r_bottom || r > model->layer[RAYS_P][i].r_top)
            continue;
        if (model->layers == RAYS_MAX_LAYERS)
            return -1;
        for (int wave = 0; wave < 2; wave++) {
            struct rays_layer *at = &model->layer[wave][i], whole = *at;
            double v = rays_layer_speed(&whole, r);
            memmove(at + 1, at, (model->layers - i) * sizeof *at);
            rays_layer_init(at, whole.r_top, r, whole.v_top, v);
            rays_layer_init(at + 1, r, whole.r_bottom, v, whole.v_bottom);
        }
        model->layers++;
        for (int region = RAYS_OUTER_CORE; region <= RAYS_REGIONS; region++)
            model->first[region]++;
        return i + 1;
    }
    return -1;
}
