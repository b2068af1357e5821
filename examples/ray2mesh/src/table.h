/* Tables of events and stations: text with a line of names, and columns separated by commas or bars. It reads
 * the catalogues of USGS (CSV), those of FDSN services (format=text, events and stations alike), and what
 * quakeml.py makes of QuakeML. Columns are found by their names. */
#ifndef RAYS_TABLE_H
#define RAYS_TABLE_H

#define RAYS_NAME_BYTES 32

struct rays_site {
    /* An event's id, or NETWORK.STATION; a number where the table has none. Longer ones are cut. */
    char name[RAYS_NAME_BYTES];
    /* Degrees, geographic; km, 0 for stations and for events above the surface. */
    double latitude, longitude, depth_km;
};

struct rays_table {
    int sites;
    struct rays_site *site;
};

/* Events must have a column of depths. Returns 0, or -1 with a sentence that names file and line. */
int rays_table_read(struct rays_table *table, const char *path, int events, char *error, int error_bytes);
void rays_table_free(struct rays_table *table);

#endif
