/* A spherical Earth of shells: what waves of each kind meet on their way down. Read from a .tvel file: two
 * lines of comment, then depth in km, speed of P and of S in km/s, and density, from the surface to the
 * centre. A depth that stands twice is a discontinuity. Between two depths speeds follow a power of the
 * radius (layer.h). */
#ifndef RAYS_MODEL_H
#define RAYS_MODEL_H

#include "layer.h"

enum rays_wave { RAYS_P, RAYS_S };

/* Parts of the Earth: the solid mantle with the crust, the fluid outer core, the solid inner core. */
enum rays_region { RAYS_MANTLE, RAYS_OUTER_CORE, RAYS_INNER_CORE, RAYS_REGIONS };

#define RAYS_MAX_LAYERS 1024

struct rays_model {
    double radius_km;
    int layers;
    /* Region g is of layers first[g] to first[g + 1] - 1; it may be empty, except the mantle. */
    int first[RAYS_REGIONS + 1];
    /* From the surface down; those of S in the outer core have speeds 0 and are not to be used. */
    struct rays_layer layer[2][RAYS_MAX_LAYERS];
};

/* Returns 0, or -1 with a sentence in error: the file and the line that is wrong. */
int rays_model_read(struct rays_model *model, const char *path, char *error, int error_bytes);

/* Cuts the layer in two at this depth, where there is no boundary yet. Returns the index of the layer below,
 * or -1 where the depth is not inside the mantle, or there is no room. */
int rays_model_cut(struct rays_model *model, double depth_km);

#endif
