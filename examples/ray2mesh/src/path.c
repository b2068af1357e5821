/* Goes along a ray layer by layer. */
#include "path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int add(struct rays_path *path, struct rays_point point)
{
    if (path->points == path->room) {
        int room = path->room ? 2 * path->room : 512;
        struct rays_point *more = realloc(path->point, room * sizeof *more);
        if (!more)
            return -1;
        path->point = more;
        path->room = room;
    }
    path->point[path->points++] = point;
    return 0;
}

struct walk {
    struct rays_path *path;
    const struct rays_layer *layers;
    double p, step_km;
    /* The layer in which the ray turns, or -1. */
    int turning;
};

/* Adds the points of one way through layer i, after the first of them, which is there. */
static int through(const struct walk *walk, int i, int down)
{
    const struct rays_layer *layer = &walk->layers[i];
    int turns = i == walk->turning;
    struct rays_step whole = turns ? rays_layer_turn(layer, walk->p) : rays_layer_cross(layer, walk->p);
    int steps = 1 + (int)(whole.time * fmax(layer->v_top, layer->v_bottom) / walk->step_km);
    struct rays_point start = walk->path->point[walk->path->points - 1];
    for (int k = 1; k <= steps; k++) {
        struct rays_step from_top;
        double done = down ? (double)k / steps : (double)(steps - k) / steps;
        double r = rays_layer_point(layer, walk->p, turns, done, &from_top);
        if (k == steps && (!down || !turns))
            r = down ? layer->r_bottom : layer->r_top;
        if (!down)
            from_top = (struct rays_step){whole.time - from_top.time, whole.distance - from_top.distance};
        if (add(walk->path,
                (struct rays_point){r, start.distance + from_top.distance, start.time_s + from_top.time}))
            return -1;
    }
    return 0;
}

static int down(const struct walk *walk, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (through(walk, i, 1))
            return -1;
    return 0;
}

static int up(const struct walk *walk, int first)
{
    for (int i = first; i >= 0; i--)
        if (through(walk, i, 0))
            return -1;
    return 0;
}

int rays_path_make(struct rays_path *path, const struct rays_search *search,
                   const struct rays_arrival *arrival, double step_km)
{
    const struct rays_curve *curve = rays_search_curve(search, arrival);
    const struct rays_piece *piece = &curve->piece[arrival->piece];
    struct walk walk = {path, curve->model->layer[curve->wave], arrival->p, step_km,
                        piece->turns ? piece->deepest : -1};
    path->points = 0;
    if (add(path, (struct rays_point){curve->model->radius_km - curve->depth_km, 0, 0}))
        return -1;
    if (curve->below == 0)
        return up(&walk, curve->source - 1);
    if (curve->above == 3 && up(&walk, curve->source - 1))
        return -1;
    if (down(&walk, curve->above == 3 ? 0 : curve->source, piece->deepest))
        return -1;
    return up(&walk, piece->deepest);
}

void rays_path_free(struct rays_path *path)
{
    free(path->point);
    memset(path, 0, sizeof *path);
}
