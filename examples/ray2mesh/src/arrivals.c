/* Two-point search: in each stretch in which distance only grows or only falls with p there is at most one
 * ray. */
#include "arrivals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SAME_TIME_S 1e-3
#define SAME_P 1e-2

/* Bracketing by the Illinois rule needs about ten steps; each that gains little is followed by a bisection.
 */
#define MOST_STEPS 100
#define CLOSE_ENOUGH_RAD 1e-14

/* More than any phase here has; later ones are left out. */
#define MOST_ARRIVALS 128

const char *const rays_phase_names[RAYS_PHASES] = {"P",     "S",     "PcP",   "ScS", "PKP",
                                                   "PKPab", "PKPbc", "PKPdf", "pP",  "sS"};

static const struct {
    int curves;
    enum rays_branch branch[2];
} branches[RAYS_PHASES] = {
    [RAYS_PHASE_P] = {2, {RAYS_BRANCH_P, RAYS_BRANCH_P_UP}},
    [RAYS_PHASE_S] = {2, {RAYS_BRANCH_S, RAYS_BRANCH_S_UP}},
    [RAYS_PHASE_PCP] = {1, {RAYS_BRANCH_PCP}},
    [RAYS_PHASE_SCS] = {1, {RAYS_BRANCH_SCS}},
    [RAYS_PHASE_PKP] = {2, {RAYS_BRANCH_PKIKP, RAYS_BRANCH_PKP}},
    [RAYS_PHASE_PKPAB] = {1, {RAYS_BRANCH_PKP}},
    [RAYS_PHASE_PKPBC] = {1, {RAYS_BRANCH_PKP}},
    [RAYS_PHASE_PKPDF] = {1, {RAYS_BRANCH_PKIKP}},
    [RAYS_PHASE_PP_UP] = {1, {RAYS_BRANCH_PP_UP}},
    [RAYS_PHASE_SS_UP] = {1, {RAYS_BRANCH_SS_UP}},
};

/* pP and PP, sS and SS are unlike phases: the case of letters counts. */
int rays_phase_named(const char *name)
{
    for (int i = 0; i < RAYS_PHASES; i++)
        if (strcmp(name, rays_phase_names[i]) == 0)
            return i;
    return strcmp(name, "PKIKP") == 0 ? RAYS_PHASE_PKPDF : -1;
}

int rays_search_make(struct rays_search *search, const struct rays_model *model, enum rays_phase phase,
                     double depth_km)
{
    memset(search, 0, sizeof *search);
    search->phase = phase;
    for (int i = 0; i < branches[phase].curves; i++) {
        if (rays_curve_make(&search->curve[i], model, branches[phase].branch[i], depth_km)) {
            rays_search_free(search);
            return -1;
        }
        search->curves++;
    }
    return 0;
}

void rays_search_free(struct rays_search *search)
{
    for (int i = 0; i < search->curves; i++)
        rays_curve_free(&search->curve[i]);
    search->curves = 0;
}

const struct rays_curve *rays_search_curve(const struct rays_search *search,
                                           const struct rays_arrival *arrival)
{
    for (int i = 0; i < search->curves; i++)
        if (search->curve[i].branch == arrival->branch)
            return &search->curve[i];
    return NULL;
}

/* The ray between two samples that goes this far. Its time is corrected by p times what is missing, the first
 * term of the series: p is the derivative of time. */
static struct rays_arrival refine(const struct rays_curve *curve, const struct rays_piece *piece,
                                  const struct rays_sample *sample, double distance)
{
    double low = sample[0].p, high = sample[1].p;
    double at_low = sample[0].distance - distance, at_high = sample[1].distance - distance, p = low;
    struct rays_step ray = {0, 0};
    int side = 0;
    for (int i = 0; i < MOST_STEPS; i++) {
        double part = at_low / (at_low - at_high);
        p = i % 3 == 2 || !(part >= 0 && part <= 1) ? (low + high) / 2 : low + (high - low) * part;
        ray = rays_curve_ray(curve, piece, p);
        double here = ray.distance - distance;
        if (fabs(here) < CLOSE_ENOUGH_RAD || p == low || p == high)
            break;
        if ((here < 0) == (at_low < 0)) {
            low = p, at_low = here;
            at_high = side == 1 ? at_high / 2 : at_high;
            side = 1;
        } else {
            high = p, at_high = here;
            at_low = side == -1 ? at_low / 2 : at_low;
            side = -1;
        }
    }
    return (struct rays_arrival){ray.time + p * (distance - ray.distance),
                                 p,
                                 distance,
                                 curve->branch,
                                 (int)(piece - curve->piece),
                                 NULL};
}

/* Whether the phase has this ray, and its name. Of rays that turn in the outer core those of PKPab reach
 * farther the larger p is, those of PKPbc nearer. */
static const char *name_of(enum rays_phase phase, enum rays_branch branch, int grows)
{
    const char *name = rays_phase_names[phase];
    if (branch == RAYS_BRANCH_PKIKP)
        name = rays_phase_names[RAYS_PHASE_PKPDF];
    if (branch == RAYS_BRANCH_PKP)
        name = rays_phase_names[grows ? RAYS_PHASE_PKPAB : RAYS_PHASE_PKPBC];
    return phase == RAYS_PHASE_PKP || name == rays_phase_names[phase] ? name : NULL;
}

static int earlier(const void *a, const void *b)
{
    const struct rays_arrival *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s < y->time_s ? -1 : 1;
    return (x->p > y->p) - (x->p < y->p);
}

static int find_in_curve(const struct rays_search *search, const struct rays_curve *curve, double distance,
                         struct rays_arrival *found, int count)
{
    for (int k = 0; k < curve->pieces; k++) {
        const struct rays_piece *piece = &curve->piece[k];
        for (int i = piece->first; i < piece->first + piece->samples - 1 && count < MOST_ARRIVALS; i++) {
            const struct rays_sample *at = &curve->sample[i];
            int grows = at[1].distance > at[0].distance;
            double nearest = grows ? at[0].distance : at[1].distance,
                   farthest = grows ? at[1].distance : at[0].distance;
            const char *name = name_of(search->phase, curve->branch, grows);
            if (distance < nearest || distance > farthest || nearest == farthest || !name)
                continue;
            found[count] = refine(curve, piece, at, distance);
            found[count++].name = name;
        }
    }
    return count;
}

int rays_search_find(const struct rays_search *search, double distance, struct rays_arrival *arrivals,
                     int room)
{
    struct rays_arrival found[MOST_ARRIVALS] = {0};
    int count = 0, kept = 0;
    for (int i = 0; i < search->curves; i++) {
        count = find_in_curve(search, &search->curve[i], distance, found, count);
        if (distance > 0 && distance < M_PI)
            count = find_in_curve(search, &search->curve[i], 2 * M_PI - distance, found, count);
    }
    qsort(found, count, sizeof *found, earlier);
    for (int i = 0; i < count; i++) {
        int same = 0;
        for (int j = i - 1; j >= 0 && found[i].time_s - found[j].time_s < SAME_TIME_S; j--)
            same |=
                found[i].branch == found[j].branch && fabs(found[i].p - found[j].p) <= SAME_P * found[i].p;
        if (!same && kept < room)
            arrivals[kept++] = found[i];
    }
    return kept;
}
