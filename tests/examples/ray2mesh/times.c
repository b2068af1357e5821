/* times MODELS REFERENCE: travel times of the library of rays beside those of others. MODELS is the folder of
 * the .tvel files, REFERENCE is reference.csv or others.csv, each row of which must have a tolerance, and
 * keep it. */
#include "arrivals.h"
#include "must.h"

#include <math.h>
#include <string.h>

#define DEGREE (M_PI / 180)
#define ROOM 64

/* The largest differences in s that a phase may have. At 20 degrees and 150 km TauP has a pP 0.07 s from the
 * nearest here: its triplication ends at 20.006 degrees, and with layers of 26 km at 19.998. The published
 * tables are to 0.01 s. Their makers, ttimes and cake interpolate models in other ways. "uncut" is cake, too,
 * for a library whose layers are those of the file, as cake's are: times are the same then. */
static const struct tolerance {
    const char *source, *phase;
    double low, high, seconds;
} tolerances[] = {
    {"taup", "P", 0, 181, 0.005},    {"taup", "S", 0, 181, 0.007},     {"taup", "PcP", 0, 181, 0.005},
    {"taup", "ScS", 0, 181, 0.005},  {"taup", "PKP", 0, 181, 0.005},   {"taup", "pP", 0, 19.5, 0.005},
    {"taup", "pP", 19.5, 20.5, 0.1}, {"taup", "pP", 20.5, 181, 0.005}, {"taup", "sS", 0, 181, 0.007},
    {"table", "P", 0, 181, 0.1},     {"table", "S", 0, 181, 0.1},      {"table", "PcP", 0, 181, 0.1},
    {"table", "ScS", 0, 181, 0.1},   {"table", "PKPdf", 0, 181, 0.1},  {"cake", "P", 0, 29.5, 0.02},
    {"cake", "P", 29.5, 181, 0.02},  {"cake", "S", 0, 29.5, 0.03},     {"cake", "S", 29.5, 181, 0.03},
    {"cake", "PcP", 0, 181, 0.02},   {"cake", "ScS", 0, 181, 0.03},    {"cake", "PKP", 0, 181, 0.05},
    {"cake", "pP", 0, 181, 0.03},    {"cake", "sS", 0, 181, 0.03},     {"ttimes", "P", 0, 181, 0.02},
    {"ttimes", "S", 0, 181, 0.02},   {"ttimes", "PcP", 0, 181, 0.02},  {"ttimes", "ScS", 0, 181, 0.02},
    {"ttimes", "pP", 0, 181, 0.02},  {"ttimes", "sS", 0, 181, 0.02},   {"fine", "pP", 0, 19.5, 0.005},
    {"fine", "pP", 19.5, 20.5, 0.1}, {"fine", "pP", 20.5, 181, 0.005}, {"uncut", "P", 0, 181, 0.001},
    {"uncut", "S", 0, 181, 0.001},   {"uncut", "PcP", 0, 181, 0.001},  {"uncut", "ScS", 0, 181, 0.001},
    {"uncut", "PKP", 0, 181, 0.001}, {"uncut", "pP", 0, 181, 0.001},   {"uncut", "sS", 0, 181, 0.001},
};
#define TOLERANCES (int)(sizeof tolerances / sizeof *tolerances)

/* How many rows each tolerance was for, and the worst difference. */
static int rows[TOLERANCES];
static double worst[TOLERANCES];

struct row {
    char source[16], model[16], phase[16];
    double depth, degrees, time, p;
};

/* The difference of time of the arrival that is like the row in time and, if the row has one, ray parameter.
 */
static double difference(const struct rays_search *search, const struct row *row)
{
    struct rays_arrival arrival[ROOM];
    double closest = INFINITY, best = INFINITY;
    int count = rays_search_find(search, row->degrees * DEGREE, arrival, ROOM);
    if (row->p == 0)
        return count ? arrival[0].time_s - row->time : INFINITY;
    for (int i = 0; i < count; i++) {
        double off = fabs(arrival[i].time_s - row->time) + 0.01 * fabs(arrival[i].p - row->p);
        if (off < closest) {
            closest = off;
            best = arrival[i].time_s - row->time;
        }
    }
    return best;
}

/* Arrivals of TauP at one distance. */
struct group {
    struct row row;
    int count;
    double time[ROOM];
};

/* Every arrival that is found is one of TauP's, or one of its own triplications at a change of gradient:
 * these are within hundredths of a second of another. */
static void nothing_is_found_but(const struct group *group, const struct rays_search *search)
{
    struct rays_arrival arrival[ROOM];
    int count = group->count ? rays_search_find(search, group->row.degrees * DEGREE, arrival, ROOM) : 0;
    for (int i = 0; i < count; i++) {
        double closest = INFINITY;
        for (int k = 0; k < group->count; k++)
            closest = fmin(closest, fabs(arrival[i].time_s - group->time[k]));
        must(closest < 0.02, "%s of %s, %g km, %g degrees: TauP has none at %.4f s", group->row.phase,
             group->row.model, group->row.depth, group->row.degrees, arrival[i].time_s);
    }
}

static void add_to_group(struct group *group, const struct row *row, const struct rays_search *search)
{
    if (row->degrees != group->row.degrees) {
        nothing_is_found_but(group, search);
        *group = (struct group){.row = *row};
    }
    if (!strcmp(row->source, "taup") && group->count < ROOM)
        group->time[group->count++] = row->time;
}

/* Every row has a tolerance, and keeps it. */
static void compare(const struct row *row, double off, const char *line)
{
    int is_compared = 0;
    for (int i = 0; i < TOLERANCES; i++) {
        const struct tolerance *t = &tolerances[i];
        if (strcmp(t->source, row->source) || strcmp(t->phase, row->phase) || row->degrees < t->low ||
            row->degrees >= t->high)
            continue;
        must(fabs(off) <= t->seconds, "difference %+.4f s, allowed %.3f: %s", off, t->seconds, line);
        worst[i] = fmax(worst[i], fabs(off));
        rows[i]++;
        is_compared = 1;
    }
    must(is_compared, "there is a tolerance for %s", line);
}

static void times_are_those_of_the_reference(const char *models, const char *reference)
{
    struct row row, last = {0};
    struct rays_search search = {0};
    struct group group = {0};
    char line[256];
    FILE *file = fopen(reference, "r");
    must(file != NULL, "%s can be opened", reference);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%15[^,],%15[^,],%15[^,],%lf,%lf,%lf,%lf", row.source, row.model, row.phase,
                   &row.depth, &row.degrees, &row.time, &row.p) != 7)
            continue;
        if (strcmp(row.model, last.model) || strcmp(row.phase, last.phase) || row.depth != last.depth) {
            nothing_is_found_but(&group, &search);
            group = (struct group){.row = row};
            rays_search_free(&search);
            must(!rays_search_make(&search, shipped(models, row.model), rays_phase_named(row.phase),
                                   row.depth),
                 "%s has rays", line);
            last = row;
        }
        add_to_group(&group, &row, &search);
        double off = difference(&search, &row);
        compare(&row, off, line);
    }
    nothing_is_found_but(&group, &search);
    fclose(file);
    rays_search_free(&search);
}

static void print_what_was_compared(void)
{
    for (int i = 0; i < TOLERANCES; i++) {
        const struct tolerance *t = &tolerances[i];
        if (!rows[i])
            continue;
        printf("%-6s  %-5s  %5.1f to %5.1f degrees: %4d rows, worst difference %.4f s, allowed %.3f s\n",
               t->source, t->phase, t->low, t->high, rows[i], worst[i], t->seconds);
    }
}

int main(int argc, char **argv)
{
    must(argc == 3, "the arguments are MODELS REFERENCE");
    times_are_those_of_the_reference(argv[1], argv[2]);
    print_what_was_compared();
    return 0;
}
