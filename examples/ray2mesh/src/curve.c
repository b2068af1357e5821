/* Divides the ray parameters of a branch into pieces, and samples each. */
#include "curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Samples of a piece, at least, and one more for so many s/rad. At both ends the distance goes as a square
 * root, so samples lie as the cosine of even steps. */
#define LEAST_STEPS 12
#define STEP_P 4.0

/* Steps of the golden section: it finds where distance turns to 1e-8 of the interval, where distance itself
 * differs by no more than rounding. */
#define GOLDEN_STEPS 40

enum bottom { NO_BOTTOM, TURNS, AT_CORE };

/* Ways a ray of each branch goes. */
static const struct way {
    enum rays_wave wave;
    enum bottom bottom;
    enum rays_region region;
    int above;
} ways[RAYS_BRANCHES] = {
    [RAYS_BRANCH_P] = {RAYS_P, TURNS, RAYS_MANTLE, 1},
    [RAYS_BRANCH_P_UP] = {RAYS_P, NO_BOTTOM, RAYS_MANTLE, 1},
    [RAYS_BRANCH_S] = {RAYS_S, TURNS, RAYS_MANTLE, 1},
    [RAYS_BRANCH_S_UP] = {RAYS_S, NO_BOTTOM, RAYS_MANTLE, 1},
    [RAYS_BRANCH_PCP] = {RAYS_P, AT_CORE, RAYS_MANTLE, 1},
    [RAYS_BRANCH_SCS] = {RAYS_S, AT_CORE, RAYS_MANTLE, 1},
    [RAYS_BRANCH_PKP] = {RAYS_P, TURNS, RAYS_OUTER_CORE, 1},
    [RAYS_BRANCH_PKIKP] = {RAYS_P, TURNS, RAYS_INNER_CORE, 1},
    [RAYS_BRANCH_PP_UP] = {RAYS_P, TURNS, RAYS_MANTLE, 3},
    [RAYS_BRANCH_SS_UP] = {RAYS_S, TURNS, RAYS_MANTLE, 3},
};

static const struct rays_layer *layers_of(const struct rays_curve *curve)
{
    return curve->model->layer[curve->wave];
}

/* The largest ray parameter that layers first to end - 1 all let through. */
static double least_eta(const struct rays_curve *curve, int first, int end)
{
    double least = INFINITY;
    for (int i = first; i < end; i++)
        least = fmin(least, fmin(layers_of(curve)[i].eta_top, layers_of(curve)[i].eta_bottom));
    return least;
}

/* Depth phases: a ray comes down to the source's depth again, and may be reflected there. */
static int goes_up_first(const struct way *way) { return way->above > 1; }

/* Where rays with this parameter, no boundary's, end: 1 if it is within the branch. */
static int find_bottom(const struct rays_curve *curve, double p, struct rays_piece *piece)
{
    const struct way *way = &ways[curve->branch];
    const struct rays_model *model = curve->model;
    int begin = model->first[way->region], end = model->first[way->region + 1];
    if (way->bottom == NO_BOTTOM || way->bottom == AT_CORE) {
        piece->deepest = way->bottom == NO_BOTTOM ? curve->source - 1 : end - 1;
        piece->turns = 0;
        return piece->deepest >= 0 && p < least_eta(curve, 0, piece->deepest + 1);
    }
    for (int i = curve->source; i < end; i++) {
        const struct rays_layer *layer = &layers_of(curve)[i];
        if (layer->eta_top < p) {
            piece->deepest = i - 1;
            piece->turns = 0;
            return (i > curve->source || goes_up_first(way)) && i > begin;
        }
        if (layer->eta_bottom < p) {
            piece->deepest = i;
            piece->turns = 1;
            return i >= begin;
        }
    }
    return 0;
}

struct rays_step rays_curve_ray(const struct rays_curve *curve, const struct rays_piece *piece, double p)
{
    const struct rays_layer *layers = layers_of(curve);
    struct rays_step sum = {0, 0};
    for (int i = 0; i <= piece->deepest; i++) {
        int last = i == piece->deepest && piece->turns,
            times = i < curve->source ? curve->above : curve->below;
        struct rays_step step = last ? rays_layer_turn(&layers[i], p) : rays_layer_cross(&layers[i], p);
        sum.time += times * step.time;
        sum.distance += times * step.distance;
    }
    return sum;
}

static int add_sample(struct rays_curve *curve, double p, double distance)
{
    if (curve->samples == curve->room_samples) {
        int room = curve->room_samples ? 2 * curve->room_samples : 1024;
        struct rays_sample *more = realloc(curve->sample, room * sizeof *more);
        if (!more)
            return -1;
        curve->sample = more;
        curve->room_samples = room;
    }
    curve->sample[curve->samples++] = (struct rays_sample){p, distance};
    return 0;
}

/* Where distance is largest, or with sign -1 smallest, between two parameters. */
static struct rays_sample extreme(const struct rays_curve *curve, const struct rays_piece *piece, double low,
                                  double high, int sign)
{
    const double golden = 0.6180339887498949;
    double a = high - golden * (high - low), b = low + golden * (high - low);
    double at_a = sign * rays_curve_ray(curve, piece, a).distance;
    double at_b = sign * rays_curve_ray(curve, piece, b).distance;
    for (int i = 0; i < GOLDEN_STEPS; i++) {
        if (at_a > at_b) {
            high = b, b = a, at_b = at_a;
            a = high - golden * (high - low);
            at_a = sign * rays_curve_ray(curve, piece, a).distance;
        } else {
            low = a, a = b, at_a = at_b;
            b = low + golden * (high - low);
            at_b = sign * rays_curve_ray(curve, piece, b).distance;
        }
    }
    return (struct rays_sample){a, sign * at_a};
}

/* Samples a piece. Where the middle of three neighbours is the largest or smallest, it is moved to the
 * extreme, so that no ray near a caustic is missed. */
static int sample_piece(struct rays_curve *curve, struct rays_piece *piece)
{
    double width = piece->p_high - piece->p_low;
    int steps = LEAST_STEPS + (int)(width / STEP_P);
    piece->first = curve->samples;
    piece->samples = steps + 1;
    for (int i = 0; i <= steps; i++) {
        double p = i == steps ? piece->p_high : piece->p_low + width * (1 - cos(M_PI * i / steps)) / 2;
        if (add_sample(curve, p, rays_curve_ray(curve, piece, p).distance))
            return -1;
    }
    struct rays_sample *at = &curve->sample[piece->first];
    for (int i = 1; i < steps; i++) {
        double before = at[i].distance - at[i - 1].distance, after = at[i + 1].distance - at[i].distance;
        if (before * after < 0)
            at[i] = extreme(curve, piece, at[i - 1].p, at[i + 1].p, before > 0 ? 1 : -1);
    }
    return 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Parameters at which rays begin to end in another way: r / v on both sides of each boundary; within 0 to
 * limit. */
static int boundaries(const struct rays_curve *curve, double limit, double *p)
{
    const struct way *way = &ways[curve->branch];
    int count = 0, end = curve->model->first[way->region + 1];
    p[count++] = 0;
    p[count++] = limit;
    for (int i = curve->source; way->bottom == TURNS && i < end; i++) {
        const struct rays_layer *layer = &layers_of(curve)[i];
        if (layer->eta_top < limit)
            p[count++] = layer->eta_top;
        if (layer->eta_bottom < limit)
            p[count++] = layer->eta_bottom;
    }
    qsort(p, count, sizeof *p, ascending);
    return count;
}

static int make_pieces(struct rays_curve *curve)
{
    const struct way *way = &ways[curve->branch];
    const struct rays_model *model = curve->model;
    int last = way->bottom == NO_BOTTOM ? curve->source
               : way->bottom == AT_CORE ? model->first[RAYS_OUTER_CORE]
                                        : model->first[way->region];
    /* All layers that every ray of the branch crosses, and the source's own where it must begin to go down.
     */
    double limit = least_eta(curve, 0, last > curve->source ? last : curve->source);
    if (way->bottom != NO_BOTTOM && !goes_up_first(way))
        limit = fmin(limit, layers_of(curve)[curve->source].eta_top);
    double p[2 * RAYS_MAX_LAYERS + 2];
    int count = isfinite(limit) ? boundaries(curve, limit, p) : 0;
    curve->piece = malloc((count + 1) * sizeof *curve->piece);
    if (!curve->piece)
        return -1;
    for (int i = 1; i < count; i++) {
        struct rays_piece *piece = &curve->piece[curve->pieces];
        /* Boundaries that differ by rounding alone are one. */
        if (p[i] - p[i - 1] < 1e-12 * p[i] || !find_bottom(curve, (p[i - 1] + p[i]) / 2, piece))
            continue;
        piece->p_low = p[i - 1];
        piece->p_high = p[i];
        if (sample_piece(curve, piece))
            return -1;
        curve->pieces++;
    }
    return 0;
}

int rays_curve_make(struct rays_curve *curve, const struct rays_model *model, enum rays_branch branch,
                    double depth_km)
{
    const struct way *way = &ways[branch];
    memset(curve, 0, sizeof *curve);
    curve->model = malloc(sizeof *model);
    if (!curve->model)
        return -1;
    *curve->model = *model;
    curve->branch = branch;
    curve->wave = way->wave;
    curve->depth_km = depth_km;
    curve->above = way->above;
    curve->below = way->bottom == NO_BOTTOM ? 0 : 2;
    curve->source = rays_model_cut(curve->model, depth_km);
    /* A depth phase of a source at the surface would be the phase itself. */
    int exists = !(curve->source == 0 && (way->above > 1 || way->bottom == NO_BOTTOM));
    /* Without a core nothing is reflected at it, nor turns inside. */
    int needs_core = way->bottom == AT_CORE || way->region != RAYS_MANTLE;
    if (needs_core && curve->model->first[RAYS_OUTER_CORE] == curve->model->layers)
        exists = 0;
    if (way->region != RAYS_MANTLE && model->first[way->region] == model->first[way->region + 1])
        exists = 0;
    if (curve->source < 0 || (exists && make_pieces(curve))) {
        rays_curve_free(curve);
        return -1;
    }
    return 0;
}

void rays_curve_free(struct rays_curve *curve)
{
    free(curve->model);
    free(curve->piece);
    free(curve->sample);
    memset(curve, 0, sizeof *curve);
}
