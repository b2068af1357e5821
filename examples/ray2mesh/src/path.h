/* The points of a ray, from the source to the station. */
#ifndef RAYS_PATH_H
#define RAYS_PATH_H

#include "arrivals.h"

struct rays_point {
    double r_km, distance, time_s;
};

struct rays_path {
    int points, room;
    struct rays_point *point;
};

/* Points at the boundaries of layers, and between them so that they are at most about step_km apart. The path
 * must be zeros, or of a call before: its memory is used again. 0, or -1 if memory is short. */
int rays_path_make(struct rays_path *path, const struct rays_search *search,
                   const struct rays_arrival *arrival, double step_km);
void rays_path_free(struct rays_path *path);

#endif
