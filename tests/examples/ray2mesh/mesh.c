/* mesh MODELS [SEED]: cells and tables of the library of rays. Random rays and meshes are divided among
 * cells, and compared with points along the ray; then tables of events and stations, right and wrong. */
#include "mesh.h"
#include "must.h"
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Between points of the path that is divided. */
static const double STEP_KM = 20;

static double between(double low, double high) { return low + (high - low) * (rand() / (RAND_MAX + 1.0)); }

/* Length of the ray in one cell, from points so near each other that nothing is divided. */
static double measured(const struct rays_mesh *mesh, const struct rays_path *path,
                       const struct rays_circle *circle, int64_t cell)
{
    double sum = 0;
    for (int i = 1; i < path->points; i++) {
        const struct rays_point *a = &path->point[i - 1], *b = &path->point[i];
        double latitude, longitude, half = sin((b->distance - a->distance) / 2);
        rays_place_geocentric(rays_circle_point(circle, (a->distance + b->distance) / 2), &latitude,
                              &longitude);
        if (rays_mesh_cell(mesh, latitude, longitude, 6371 - (a->r_km + b->r_km) / 2) == cell)
            sum += sqrt(pow(a->r_km - b->r_km, 2) + 4 * a->r_km * b->r_km * half * half);
    }
    return sum;
}

static double length_of(const struct rays_path *path)
{
    double sum = 0;
    for (int i = 1; i < path->points; i++) {
        const struct rays_point *a = &path->point[i - 1], *b = &path->point[i];
        sum += sqrt(pow(a->r_km - b->r_km, 2) +
                    4 * a->r_km * b->r_km * pow(sin((b->distance - a->distance) / 2), 2));
    }
    return sum;
}

static void pieces_are_what_points_along_the_ray_say(const struct rays_model *model)
{
    const double steps[][3] = {{5, 5, 100}, {10, 15, 250}, {1, 2, 50}, {180, 360, 6371}, {45, 0.5, 7000}};
    struct rays_path coarse = {0}, fine = {0};
    struct rays_pieces pieces = {0};
    int traced = 0;
    for (int run = 0; run < 30; run++) {
        struct rays_mesh mesh;
        struct rays_search search;
        struct rays_arrival arrival;
        const double *step = steps[run % 5];
        struct rays_place from = rays_place_at(between(-90, 90), between(-180, 180));
        /* Some at the pole, or at the same place. */
        struct rays_place to =
            run % 12 == 11 ? from : rays_place_at(run % 7 ? between(-90, 90) : 90, between(0, 360));
        must(!rays_mesh_init(&mesh, 6371, step[0], step[1], step[2]), "a mesh of %g degrees", step[0]);
        must(!rays_search_make(&search, model, run % RAYS_PHASES, between(0, 700)), "a search");
        if (rays_search_find(&search, rays_place_distance(from, to), &arrival, 1)) {
            struct rays_circle circle = rays_circle_make(from, to, arrival.distance > M_PI);
            must(!rays_path_make(&coarse, &search, &arrival, STEP_KM) &&
                     !rays_path_make(&fine, &search, &arrival, 0.5) &&
                     !rays_mesh_trace(&mesh, &coarse, &circle, &pieces),
                 "the ray is traced");
            double length = 0, whole = length_of(&fine), astray = 0;
            for (int i = 0; i < pieces.count; i++) {
                double found = measured(&mesh, &fine, &circle, pieces.piece[i].cell);
                astray += fabs(found - pieces.piece[i].length_km);
                must(pieces.piece[i].cell >= 0 && pieces.piece[i].cell < rays_mesh_cells(&mesh),
                     "cells exist");
                length += pieces.piece[i].length_km;
            }
            must(fabs(length - whole) < 1e-4 * whole + 1e-9, "pieces sum to the ray: %.6f km, not %.6f",
                 length, whole);
            /* Each time a ray goes from cell to cell half a kilometre may count for the other; more where it
             * goes along a boundary. Where it is deepest, a chord of length h lies h^2/8R below an arc of
             * radius R. If the boundary is there, as much as h of the ray is missing in one cell and too much
             * in the other. */
            must(astray < 0.5 * pieces.count + 0.005 * whole + 2 * STEP_KM,
                 "run %d, %s: %.3f of %.3f km are in other cells", run, arrival.name, astray, whole);
            traced++;
        }
        rays_search_free(&search);
    }
    must(traced > 2, "many rays exist, not %d", traced);
    rays_path_free(&coarse);
    rays_path_free(&fine);
    free(pieces.piece);
}

static void pieces_near_the_centre_lie_on_straight_lines(const struct rays_model *model)
{
    struct rays_path path = {0};
    struct rays_pieces pieces = {0};
    struct rays_mesh mesh;
    must(!rays_mesh_init(&mesh, 6371, 1, 2, 50), "a mesh");
    for (int run = 1; run < 12; run++) {
        struct rays_search search;
        struct rays_arrival arrival;
        double short_of = pow(0.5, run);
        struct rays_place from = rays_place_at(0, -20);
        struct rays_place to = rays_place_at(run % 2 * 0.01, 160 - short_of);
        must(!rays_search_make(&search, model, RAYS_PHASE_PKPDF, 30), "a search");
        must(rays_search_find(&search, rays_place_distance(from, to), &arrival, 1), "PKP to the antipode");
        struct rays_circle circle = rays_circle_make(from, to, arrival.distance > M_PI);
        must(!rays_path_make(&path, &search, &arrival, STEP_KM) &&
                 !rays_mesh_trace(&mesh, &path, &circle, &pieces),
             "the ray is traced");
        double length = 0, whole = length_of(&path);
        for (int i = 0; i < pieces.count; i++)
            length += pieces.piece[i].length_km;
        must(fabs(length - whole) < 1e-9 * whole,
             "%g degrees short of the antipode: pieces of %.6f km, not %.6f", short_of, length, whole);
        rays_search_free(&search);
    }
    rays_path_free(&path);
    free(pieces.piece);
}

static void meshes_have_whole_cells(void)
{
    struct rays_mesh mesh;
    must(!rays_mesh_init(&mesh, 6371, 0.1, 0.1, 100) && rays_mesh_cells(&mesh) == 64LL * 1800 * 3600,
         "0.1 degrees");
    must(rays_mesh_init(&mesh, 6371, 7, 5, 100) == -1, "7 does not divide 180");
    must(rays_mesh_init(&mesh, 6371, 5, 0, 100) == -1, "no cell is empty");
    must(rays_mesh_init(&mesh, 6371, 5, NAN, 100) == -1, "no size is NaN");
    must(rays_mesh_init(&mesh, 6371, 0.01, 0.01, 100) == -1, "there are less than 2^31 cells");
    must(!rays_mesh_init(&mesh, 6371, 5, 5, 100), "5 degrees");
    must(rays_mesh_cell(&mesh, 90, 180, 6371) == rays_mesh_cells(&mesh) - 1,
         "the last cell has its far corner");
    must(rays_mesh_cell(&mesh, -90, -180, 0) == 0, "the first cell has its first corner");
}

/* The first line of the output, or "" for a table that is read. */
static const char *read_text(struct rays_table *table, int events, const char *text)
{
    static char error[512];
    char path[] = "/tmp/ray2mesh-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(text, file);
    fclose(file);
    error[0] = 0;
    rays_table_read(table, path, events, error, sizeof error);
    unlink(path);
    return strchr(error, ':') ? strchr(error, ':') : error;
}

static void tables_of_known_services_are_read(void)
{
    struct rays_table table;
    const char *usgs = "time,latitude,longitude,depth,mag,id,place\r\n"
                       "2016-06-14T13:49:22Z,-18.7626,168.8291,111,6.2,us1,\"5 km, Vanuatu\"\r\n"
                       "2016-06-15T00:00:00Z,1,2,-1.5,5,\"us,2\",sea\r\n";
    must(!*read_text(&table, 1, usgs), "a CSV of USGS is read");
    must(table.sites == 2 && table.site[0].latitude == -18.7626 && table.site[0].depth_km == 111 &&
             !strcmp(table.site[0].name, "us1"),
         "its rows are there");
    must(table.site[1].depth_km == 0 && !strcmp(table.site[1].name, "us 2"),
         "above the surface is at the surface");
    rays_table_free(&table);
    const char *stations =
        "#Network | Station | Latitude | Longitude | Elevation | SiteName\n"
        "TA|A04A|48.7197|-122.707|23.0|Legoe Bay, WA\n\n# a comment\nTR|ALNG|10.1814|-61.6883|10|x";
    must(!*read_text(&table, 0, stations), "FDSN's text of stations is read");
    must(table.sites == 2 && !strcmp(table.site[1].name, "TR.ALNG") && table.site[1].longitude == -61.6883,
         "stations have their networks");
    rays_table_free(&table);
    must(!*read_text(&table, 1, "\"\",\"lat\",\"long\",\"depth\",\"mag\"\n\"1\",-20.42,181.62,562,4.8\n"),
         "names in quotes are read");
    must(!strcmp(table.site[0].name, "1") && table.site[0].longitude == 181.62,
         "a site without a name has a number");
    rays_table_free(&table);
}

static void wrong_tables_are_refused(void)
{
    struct rays_table table;
    static const struct {
        int events;
        const char *text, *says;
    } wrong[] = {
        {1, "", ": no events"},
        {0, "latitude,longitude\n", ": no stations"},
        {1, "latitude,longitude\n1,2\n", ":1: the line of names has no column depth"},
        {0, "lat,x\n1,2\n", ":1: the line of names has no column longitude"},
        {0, "lat,lon\n1,2\n3\n", ":3: no number in column longitude"},
        {0, "lat,lon\n1,2x\n", ":2: no number in column longitude"},
        {0, "lat,lon\n,2\n", ":2: no number in column latitude"},
        {0, "lat,lon\n91,2\n", ":2: out of range: latitude"},
        {0, "lat,lon\nnan,2\n", ":2: out of range: latitude"},
        {1, "lat,lon,depth\n1,2,9000\n", ":2: out of range: depth"},
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *said = read_text(&table, wrong[i].events, wrong[i].text);
        must(!strcmp(said, wrong[i].says), "wrong table %u: it says \"%s\", not \"%s\"", i, said,
             wrong[i].says);
        must(table.sites == 0 && !table.site, "nothing is left of wrong table %u", i);
    }
}

int main(int argc, char **argv)
{
    static struct rays_model model;
    char path[512], error[512];
    unsigned seed = argc > 2 ? atoi(argv[2]) : 1;
    must(argc >= 2, "the arguments are MODELS [SEED]");
    printf("mesh: seed %u\n", seed);
    srand(seed);
    snprintf(path, sizeof path, "%s/ak135.tvel", argv[1]);
    must(!rays_model_read(&model, path, error, sizeof error), "%s", error);
    pieces_are_what_points_along_the_ray_say(&model);
    pieces_near_the_centre_lie_on_straight_lines(&model);
    meshes_have_whole_cells();
    tables_of_known_services_are_read();
    wrong_tables_are_refused();
    return 0;
}
