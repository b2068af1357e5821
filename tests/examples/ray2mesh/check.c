/* check MODELS: the library of rays by itself. Each check is a sentence; the first that does not hold ends
 * the program. MODELS is the folder of the .tvel files. */
#include "must.h"
#include "path.h"
#include "sphere.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEGREE (M_PI / 180)
#define ROOM 64

/* A model of these lines, in a file that is gone at once. */
static int read_text(struct rays_model *model, const char *lines, char *error, int bytes)
{
    char path[] = "/tmp/ray2mesh-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    fprintf(file, "a model\nof two lines of comment\n%s", lines);
    fclose(file);
    int status = rays_model_read(model, path, error, bytes);
    unlink(path);
    return status;
}

/* Time and distance by the midpoint rule over the radius. */
static struct rays_step integrate(const struct rays_layer *layer, double p)
{
    const int steps = 200000;
    double height = (layer->r_top - layer->r_bottom) / steps;
    struct rays_step sum = {0, 0};
    for (int i = 0; i < steps; i++) {
        double r = layer->r_bottom + (i + 0.5) * height, eta = r / rays_layer_speed(layer, r);
        double q = sqrt(eta * eta - p * p);
        sum.time += eta * eta / (r * q) * height;
        sum.distance += p / (r * q) * height;
    }
    return sum;
}

static void formulas_of_a_layer_are_the_integrals(void)
{
    /* Speeds that rise, fall and stay with depth; b = 1 and nearly; a thick shell. */
    const double layers[][4] = {{6371, 6336, 5.8, 6.5},  {6000, 5900, 10, 9.8},     {5000, 4900, 12, 12},
                                {5000, 4900, 12, 11.76}, {5000, 4900, 12, 11.7601}, {6371, 3000, 8, 13}};
    for (unsigned i = 0; i < sizeof layers / sizeof *layers; i++) {
        struct rays_layer layer;
        rays_layer_init(&layer, layers[i][0], layers[i][1], layers[i][2], layers[i][3]);
        for (double part = 0; part < 0.95; part += 0.15) {
            double p = part * fmin(layer.eta_top, layer.eta_bottom);
            struct rays_step exact = rays_layer_cross(&layer, p), sum = integrate(&layer, p), at_end;
            must(fabs(exact.time - sum.time) < 1e-6 * sum.time, "layer %u, p %g: time %.9g is %.9g", i, p,
                 exact.time, sum.time);
            must(fabs(exact.distance - sum.distance) <= 1e-6 * sum.distance,
                 "layer %u, p %g: distance %.9g is %.9g", i, p, exact.distance, sum.distance);
            double r = rays_layer_point(&layer, p, 0, 1, &at_end);
            must(fabs(r - layer.r_bottom) < 1e-6 && fabs(at_end.time - exact.time) < 1e-9 * exact.time,
                 "layer %u, p %g: the last point is the bottom", i, p);
        }
    }
}

static void rays_of_a_uniform_sphere_are_chords(void)
{
    static struct rays_model model;
    struct rays_search search;
    struct rays_arrival arrival[ROOM];
    char error[512];
    must(!read_text(&model, "0 8 4\n6371 8 4\n", error, sizeof error), "%s", error);
    must(!rays_search_make(&search, &model, RAYS_PHASE_P, 0), "P exists in a uniform sphere");
    for (double degrees = 1; degrees <= 180; degrees += 17.9) {
        double time = 2 * 6371 * sin(degrees * DEGREE / 2) / 8;
        int count = rays_search_find(&search, degrees * DEGREE, arrival, ROOM);
        must(count >= 1 && fabs(arrival[0].time_s - time) < 1e-6,
             "the chord of %g degrees takes %.7f s, not %.7f", degrees, time, count ? arrival[0].time_s : -1);
    }
    rays_search_free(&search);
    must(!rays_search_make(&search, &model, RAYS_PHASE_PCP, 0), "a sphere without a core");
    must(rays_search_find(&search, 0.5, arrival, ROOM) == 0, "without a core nothing is reflected at it");
    rays_search_free(&search);
}

/* The path ends where and when it must, and its points are near each other. */
static void check_path(const struct rays_search *search, const struct rays_arrival *arrival,
                       struct rays_path *path)
{
    const char *name = arrival->name;
    must(!rays_path_make(path, search, arrival, 20), "%s has a path", name);
    const struct rays_point *end = &path->point[path->points - 1];
    must(end->r_km == 6371, "the path of %s ends at the surface, not %.9g", name, end->r_km);
    must(fabs(end->distance - arrival->distance) < 1e-9,
         "the path of %s ends at the station, %.12g, not %.12g", name, arrival->distance, end->distance);
    must(fabs(end->time_s - arrival->time_s) < 1e-6, "the path of %s takes %.9g s, not %.9g", name,
         arrival->time_s, end->time_s);
    for (int i = 1; i < path->points; i++) {
        const struct rays_point *a = &path->point[i - 1], *b = &path->point[i];
        double angle = b->distance - a->distance;
        double chord = sqrt(pow(b->r_km - a->r_km, 2) + 4 * a->r_km * b->r_km * pow(sin(angle / 2), 2));
        must(angle >= 0 && b->time_s >= a->time_s, "the path of %s goes on", name);
        must(chord < 21, "points of %s are near each other, not %g km", name, chord);
    }
}

/* A fluid core with half the mantle's speed bends rays farther than round half the Earth. */
static void rays_may_come_round_the_other_side(void)
{
    static struct rays_model model;
    struct rays_search search;
    struct rays_arrival arrival[ROOM];
    struct rays_path path = {0};
    char error[512];
    int far = 0;
    must(!read_text(&model, "0 8 4\n3000 8 4\n3000 4 0\n6371 4 0\n", error, sizeof error), "%s", error);
    must(!rays_search_make(&search, &model, RAYS_PHASE_PKP, 0), "PKP exists");
    int count = rays_search_find(&search, 150 * DEGREE, arrival, ROOM);
    for (int i = 0; i < count; i++) {
        check_path(&search, &arrival[i], &path);
        double r = 3371, p = arrival[i].p, in_core = 2 * acos(p * 4 / r),
               leg = acos(p * 8 / 6371) - acos(p * 8 / r);
        double time =
            2 * r * sin(in_core / 2) / 4 + 2 * sqrt(r * r + 6371 * 6371 - 2 * r * 6371 * cos(leg)) / 8;
        must(fabs(in_core + 2 * leg - arrival[i].distance) < 1e-9, "angles sum to %.12g",
             arrival[i].distance);
        must(fabs(time - arrival[i].time_s) < 1e-6, "chords take %.7f s, not %.7f", time, arrival[i].time_s);
        far += fabs(arrival[i].distance - 210 * DEGREE) < 1e-12;
    }
    must(far == 1, "one ray goes 210 degrees, not %d", far);
    rays_search_free(&search);
    rays_path_free(&path);
}

/* Whether an arrival of this branch is within 2 ms and 3 % of p. */
static int is_found(const struct rays_search *search, enum rays_branch branch, double distance, double time,
                    double p)
{
    struct rays_arrival arrival[ROOM];
    int count = rays_search_find(search, distance, arrival, ROOM);
    for (int i = 0; i < count; i++)
        if (arrival[i].branch == branch && fabs(arrival[i].time_s - time) < 2e-3 &&
            fabs(arrival[i].p - p) < 0.03 * p)
            return 1;
    return 0;
}

/* Shoots many rays of a phase, and looks for each: with the distances at which they come up, and next to
 * those at which the distance turns, where two rays are nearly one. */
static void rays_that_are_shot_are_found(const char *models)
{
    const struct rays_model *model = shipped(models, "iasp91");
    const enum rays_phase phases[] = {RAYS_PHASE_P, RAYS_PHASE_S, RAYS_PHASE_PKP, RAYS_PHASE_PP_UP};
    const int shots = 16;
    int caustics = 0;
    for (int k = 0; k < 8; k++) {
        struct rays_search search;
        must(!rays_search_make(&search, model, phases[k / 2], k % 2 ? 530 : 20), "the phase exists");
        for (int c = 0; c < search.curves; c++)
            for (int i = 0; i < search.curve[c].pieces; i++) {
                const struct rays_curve *curve = &search.curve[c];
                const struct rays_piece *piece = &curve->piece[i];
                struct rays_step ray[3] = {{0, 0}};
                for (int shot = 1; shot < shots; shot++) {
                    double p =
                        piece->p_low + (piece->p_high - piece->p_low) * (1 - cos(M_PI * shot / shots)) / 2;
                    ray[0] = ray[1], ray[1] = ray[2], ray[2] = rays_curve_ray(curve, piece, p);
                    must(ray[2].distance > M_PI ||
                             is_found(&search, curve->branch, ray[2].distance, ray[2].time, p),
                         "%s with p %.9g, %.9g degrees, is found", rays_phase_names[phases[k / 2]], p,
                         ray[2].distance / DEGREE);
                    caustics += shot > 2 &&
                                (ray[1].distance - ray[0].distance) * (ray[2].distance - ray[1].distance) < 0;
                }
            }
        rays_search_free(&search);
    }
    must(caustics > 10, "distances turn, not %d times", caustics);
}

/* At the caustic of PKP two rays begin: both are found beyond it, and none before. */
static void both_rays_at_a_caustic_are_found(const char *models)
{
    struct rays_search search;
    struct rays_arrival arrival[ROOM];
    double nearest = INFINITY;
    must(!rays_search_make(&search, shipped(models, "ak135"), RAYS_PHASE_PKP, 0), "PKP exists");
    const struct rays_curve *curve = &search.curve[1];
    must(curve->branch == RAYS_BRANCH_PKP, "the second curve is that of the outer core");
    for (int i = 0; i < curve->pieces; i++)
        for (int k = 0; k <= 1000; k++) {
            const struct rays_piece *piece = &curve->piece[i];
            double p = piece->p_low + (piece->p_high - piece->p_low) * k / 1000;
            nearest = fmin(nearest, rays_curve_ray(curve, piece, p).distance);
        }
    /* A millionth of a degree beyond it they are so alike that they count as one. */
    const struct {
        double beyond;
        int least, most;
    } places[] = {{-1e-6, 0, 0}, {1e-6, 1, 2}, {0.05, 2, 2}};
    for (int k = 0; k < 3; k++) {
        int count = rays_search_find(&search, nearest + places[k].beyond * DEGREE, arrival, ROOM), outer = 0;
        for (int i = 0; i < count; i++)
            outer += arrival[i].branch == RAYS_BRANCH_PKP;
        must(outer >= places[k].least && outer <= places[k].most,
             "%g degrees beyond the caustic at %.6f are %d rays", places[k].beyond, nearest / DEGREE, outer);
    }
    rays_search_free(&search);
}

static void slope_of_time_is_the_ray_parameter(const char *models)
{
    const struct rays_model *model = shipped(models, "ak135");
    const double depths[] = {0, 15, 35, 120.5, 410, 700}, step = 1e-6;
    struct rays_path path = {0};
    int compared = 0;
    for (int phase = 0; phase < RAYS_PHASES; phase++)
        for (int d = 0; d < 6; d++) {
            struct rays_search search;
            struct rays_arrival here[ROOM], there[ROOM];
            must(!rays_search_make(&search, model, phase, depths[d]), "%s exists", rays_phase_names[phase]);
            for (double degrees = 3.3; degrees < 180; degrees += 7.1) {
                int count = rays_search_find(&search, degrees * DEGREE, here, ROOM);
                int others = rays_search_find(&search, degrees * DEGREE + step, there, ROOM);
                for (int i = 0; i < count; i++) {
                    check_path(&search, &here[i], &path);
                    for (int j = 0; j < others; j++) {
                        if (here[i].branch != there[j].branch || here[i].piece != there[j].piece ||
                            fabs(here[i].p - there[j].p) > 0.01)
                            continue;
                        double slope =
                            (there[j].time_s - here[i].time_s) / (there[j].distance - here[i].distance);
                        must(fabs(slope - here[i].p) < 0.02, "%s at %g degrees from %g km: slope %g, p %g",
                             here[i].name, degrees, depths[d], slope, here[i].p);
                        compared++;
                    }
                }
            }
            rays_search_free(&search);
        }
    must(compared > 500, "slopes of many rays are compared, not of %d", compared);
    rays_path_free(&path);
}

static int count_at(const struct rays_model *model, enum rays_phase phase, double depth, double degrees)
{
    struct rays_search search;
    struct rays_arrival arrival[ROOM];
    must(!rays_search_make(&search, model, phase, depth), "%s exists", rays_phase_names[phase]);
    int count = rays_search_find(&search, degrees * DEGREE, arrival, ROOM);
    for (int i = 1; i < count; i++)
        must(arrival[i - 1].time_s <= arrival[i].time_s, "the earliest arrival comes first");
    rays_search_free(&search);
    return count;
}

static void phases_are_where_they_belong(const char *models)
{
    const struct rays_model *model = shipped(models, "iasp91");
    must(count_at(model, RAYS_PHASE_P, 0, 20) >= 5, "two triplications overlap at 20 degrees");
    must(count_at(model, RAYS_PHASE_P, 0, 50) == 1, "there is one P at 50 degrees");
    must(count_at(model, RAYS_PHASE_P, 0, 110) == 0, "the core's shadow has no P");
    must(count_at(model, RAYS_PHASE_P, 600, 0.5) == 1, "P goes straight up above a deep source");
    must(count_at(model, RAYS_PHASE_PKPBC, 0, 140) == 0, "PKPbc begins beyond 140 degrees");
    must(count_at(model, RAYS_PHASE_PKPBC, 0, 150) == 1, "PKPbc is there at 150 degrees");
    must(count_at(model, RAYS_PHASE_PKPAB, 0, 150) == 1, "PKPab is there at 150 degrees");
    must(count_at(model, RAYS_PHASE_PKPAB, 0, 170) == 1 && count_at(model, RAYS_PHASE_PKPBC, 0, 170) == 0,
         "PKPab alone reaches 170 degrees");
    must(count_at(model, RAYS_PHASE_PKPDF, 0, 180) >= 1, "PKPdf goes through the centre");
    must(count_at(model, RAYS_PHASE_PCP, 0, 0) >= 1, "PcP comes straight back");
    must(count_at(model, RAYS_PHASE_PP_UP, 0, 50) == 0, "a source at the surface has no pP");
    struct rays_search search;
    must(rays_search_make(&search, model, RAYS_PHASE_P, 3000) == -1, "there is no source in the core");
    must(rays_search_make(&search, model, RAYS_PHASE_P, -1) == -1, "there is no source above the surface");
    must(rays_phase_named("PKIKP") == RAYS_PHASE_PKPDF && rays_phase_named("pp") == -1,
         "names of phases are known");
}

static void wrong_models_are_refused(void)
{
    static struct rays_model model;
    static const struct {
        const char *lines, *says;
    } wrong[] = {
        {"", ": fewer than two depths"},
        {"0 8 4\n", ": fewer than two depths"},
        {"0 8 4\n100 x 4\n", ":4: no depth, speed of P and speed of S"},
        {"0 8 4\n100 nan 4\n", ":4: not a finite number"},
        {"0 8 4\n100 0 4\n", ":4: the speed of P must be above 0"},
        {"10 8 4\n6371 8 4\n", ":3: the first depth must be 0 km"},
        {"0 8 4\n100 8 4\n50 8 4\n", ":5: depths must not go up"},
        {"0 1.5 0\n3 1.5 0\n3 8 4\n6371 8 4\n", ":3: the surface is fluid"},
        {"0 8 4\n100 8 0\n", ":4: the speed of S becomes 0"},
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char error[512] = "";
        must(read_text(&model, wrong[i].lines, error, sizeof error) == -1 && strstr(error, wrong[i].says),
             "wrong model %u: it says \"%s\", not \"%s\"", i, error, wrong[i].says);
    }
}

static void places_are_on_a_flattened_earth(void)
{
    struct rays_place pole = rays_place_at(90, 0), equator = rays_place_at(0, 77),
                      tokyo = rays_place_at(35.7, 139.7);
    double latitude, longitude;
    must(fabs(rays_place_distance(pole, equator) - M_PI / 2) < 1e-12,
         "the pole is 90 degrees from the equator");
    rays_place_geocentric(rays_place_at(45, -180), &latitude, &longitude);
    must(fabs(latitude - 44.80757678) < 1e-8 && longitude == -180, "geocentric latitude is %.8f", latitude);
    for (int round = 0; round < 2; round++) {
        struct rays_circle circle = rays_circle_make(equator, tokyo, round);
        double way = rays_place_distance(equator, tokyo);
        struct rays_place end = rays_circle_point(&circle, round ? 2 * M_PI - way : way);
        must(rays_place_distance(end, tokyo) < 1e-12, "a great circle reaches its end");
    }
    struct rays_circle there = rays_circle_make(pole, pole, 0);
    must(rays_place_distance(rays_circle_point(&there, M_PI / 2), pole) > 1.57,
         "there is a way from a place to itself");
}

int main(int argc, char **argv)
{
    must(argc == 2, "the argument is MODELS");
    formulas_of_a_layer_are_the_integrals();
    rays_of_a_uniform_sphere_are_chords();
    phases_are_where_they_belong(argv[1]);
    slope_of_time_is_the_ray_parameter(argv[1]);
    rays_may_come_round_the_other_side();
    rays_that_are_shot_are_found(argv[1]);
    both_rays_at_a_caustic_are_found(argv[1]);
    wrong_models_are_refused();
    places_are_on_a_flattened_earth();
    return 0;
}
