/* The rays of a phase that join a source and a station at a given distance: all of them, the earliest first.
 */
#ifndef RAYS_ARRIVALS_H
#define RAYS_ARRIVALS_H

#include "curve.h"

/* Phases by their usual names. P and S are the rays that turn in the mantle, and those that go up from the
 * source at once; PKP has all of PKPab, PKPbc and PKPdf, which is PKIKP. */
enum rays_phase {
    RAYS_PHASE_P,
    RAYS_PHASE_S,
    RAYS_PHASE_PCP,
    RAYS_PHASE_SCS,
    RAYS_PHASE_PKP,
    RAYS_PHASE_PKPAB,
    RAYS_PHASE_PKPBC,
    RAYS_PHASE_PKPDF,
    RAYS_PHASE_PP_UP,
    RAYS_PHASE_SS_UP,
    RAYS_PHASES
};

extern const char *const rays_phase_names[RAYS_PHASES];

/* -1 for a name that is none. PKIKP is another name of PKPdf. */
int rays_phase_named(const char *name);

struct rays_arrival {
    double time_s;
    /* In s/rad: also the change of time with distance. */
    double p;
    /* The way along the ray's own direction, in rad: the distance, or 2 pi less it for one that comes round
     * the other side of the Earth. */
    double distance;
    enum rays_branch branch;
    /* The piece of the branch's curve it belongs to. */
    int piece;
    /* As PKPab; that of the phase for others. */
    const char *name;
};

/* The curves of a phase for one depth, to be used for many stations. */
struct rays_search {
    enum rays_phase phase;
    int curves;
    struct rays_curve curve[2];
};

/* 0, or -1 where the depth is not inside the mantle or memory is short. */
int rays_search_make(struct rays_search *search, const struct rays_model *model, enum rays_phase phase,
                     double depth_km);
void rays_search_free(struct rays_search *search);

/* Writes up to room arrivals at a distance of 0 to pi rad, by time, and returns how many there are. Arrivals
 * less than 1 ms and 1 % of p apart count as one: wherever the gradient of a model changes, its exact curve
 * has a triplication far too small to observe. */
int rays_search_find(const struct rays_search *search, double distance, struct rays_arrival *arrivals,
                     int room);

/* The curve an arrival belongs to. */
const struct rays_curve *rays_search_curve(const struct rays_search *search,
                                           const struct rays_arrival *arrival);

#endif
