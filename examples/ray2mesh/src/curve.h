/* How far and how long each ray of a phase goes, as a function of its ray parameter, for one depth of source.
 * The phases here keep one kind of wave all the way: a ray goes down from the source to where it turns or is
 * reflected, and up to the surface; that of a depth phase goes up to the surface before.
 *
 * A ray that meets a faster layer too flatly to enter it is reflected there. So the rays of P between those
 * that turn above 410 km and those that turn below are a branch of P as well, the middle one of a
 * triplication. */
#ifndef RAYS_CURVE_H
#define RAYS_CURVE_H

#include "model.h"

/* Branches: what one curve describes. */
enum rays_branch {
    RAYS_BRANCH_P,    /* turns in the mantle */
    RAYS_BRANCH_P_UP, /* goes up from the source at once */
    RAYS_BRANCH_S,
    RAYS_BRANCH_S_UP,
    RAYS_BRANCH_PCP, /* reflected at the core */
    RAYS_BRANCH_SCS,
    RAYS_BRANCH_PKP,   /* turns in the outer core: PKPbc and PKPab */
    RAYS_BRANCH_PKIKP, /* turns in the inner core: PKPdf */
    RAYS_BRANCH_PP_UP, /* pP: up as P, reflected at the surface, then as P */
    RAYS_BRANCH_SS_UP, /* sS */
    RAYS_BRANCHES
};

/* Rays that end in the same way: their distance is a smooth function of p. */
struct rays_piece {
    double p_low, p_high;
    /* The deepest layer, and whether rays turn inside it or go to its bottom. */
    int deepest, turns;
    /* Its samples: between two neighbours distance only grows or only falls. */
    int first, samples;
};

struct rays_sample {
    double p, distance;
};

struct rays_curve {
    enum rays_branch branch;
    enum rays_wave wave;
    double depth_km;
    /* The model, with a boundary at the source: it is on top of layer `source`. */
    struct rays_model *model;
    int source;
    /* How often a ray crosses what is above the source, and what is below. */
    int above, below;
    int pieces, samples, room_pieces, room_samples;
    struct rays_piece *piece;
    struct rays_sample *sample;
};

/* Returns 0, or -1 where the depth is not inside the mantle or memory is short. A phase that this model or
 * depth does not have gives a curve without pieces. */
int rays_curve_make(struct rays_curve *curve, const struct rays_model *model, enum rays_branch branch,
                    double depth_km);
void rays_curve_free(struct rays_curve *curve);

/* The whole ray, for p within the piece. */
struct rays_step rays_curve_ray(const struct rays_curve *curve, const struct rays_piece *piece, double p);

#endif
