/* Reads tables of events and stations. */
#include "table.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_COLUMNS 64

enum column { LATITUDE, LONGITUDE, DEPTH, NETWORK, NAME, COLUMNS };

static const struct {
    enum column column;
    const char *name;
} names[] = {
    {LATITUDE, "latitude"}, {LATITUDE, "lat"},   {LONGITUDE, "longitude"},
    {LONGITUDE, "lon"},     {LONGITUDE, "long"}, {DEPTH, "depth"},
    {DEPTH, "depth/km"},    {DEPTH, "depth_km"}, {DEPTH, "dep"},
    {NETWORK, "network"},   {NETWORK, "net"},    {NAME, "id"},
    {NAME, "eventid"},      {NAME, "station"},   {NAME, "sta"},
};

static const char *const wanted[] = {"latitude", "longitude", "depth"};

struct reader {
    const char *path;
    int line, events;
    char separator;
    int at[COLUMNS];
    char *error;
    int error_bytes;
};

static int complain(const struct reader *reader, const char *what, const char *which)
{
    if (reader->line)
        snprintf(reader->error, reader->error_bytes, "%s:%d: %s%s", reader->path, reader->line, what, which);
    else
        snprintf(reader->error, reader->error_bytes, "%s: %s%s", reader->path, what, which);
    return -1;
}

/* Cuts a line into fields, without blanks and quotes around them. A separator within quotes is none. */
static int split(char *line, char separator, char **field)
{
    int count = 0;
    char *from = line;
    while (count < MAX_COLUMNS) {
        int quoted = 0;
        char *end = from;
        for (; *end && (quoted || *end != separator); end++)
            quoted ^= *end == '"';
        int is_last = *end == 0;
        *end = 0;
        char *last = end;
        while (*from && (isspace((unsigned char)*from) || *from == '"'))
            from++;
        while (last > from && (isspace((unsigned char)last[-1]) || last[-1] == '"'))
            *--last = 0;
        field[count++] = from;
        if (is_last)
            break;
        from = end + 1;
    }
    return count;
}

static int read_header(struct reader *reader, char *line)
{
    char *field[MAX_COLUMNS];
    reader->separator = strchr(line, '|') ? '|' : ',';
    int count = split(line + strspn(line, "# "), reader->separator, field);
    for (int i = 0; i < COLUMNS; i++)
        reader->at[i] = -1;
    for (int i = 0; i < count; i++)
        for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
            if (strcasecmp(field[i], names[k].name) == 0 && reader->at[names[k].column] < 0)
                reader->at[names[k].column] = i;
    for (int i = 0; i < (reader->events ? 3 : 2); i++)
        if (reader->at[i] < 0)
            return complain(reader, "the line of names has no column ", wanted[i]);
    return 0;
}

/* One number of a row, which must be from low to high. */
static int number(const struct reader *reader, char **field, int count, enum column column, double low,
                  double high, double *value)
{
    char *end = NULL;
    int at = reader->at[column];
    if (at < count)
        *value = strtod(field[at], &end);
    if (!end || end == field[at] || *end)
        return complain(reader, "no number in column ", wanted[column]);
    if (!(*value >= low && *value <= high))
        return complain(reader, "out of range: ", wanted[column]);
    return 0;
}

static int read_row(const struct reader *reader, char *line, int index, struct rays_site *site)
{
    char *field[MAX_COLUMNS];
    int count = split(line, reader->separator, field), name = reader->at[NAME], network = reader->at[NETWORK];
    memset(site, 0, sizeof *site);
    if (number(reader, field, count, LATITUDE, -90, 90, &site->latitude) ||
        number(reader, field, count, LONGITUDE, -180, 360, &site->longitude))
        return -1;
    if (reader->events && number(reader, field, count, DEPTH, -20, 6371, &site->depth_km))
        return -1;
    site->depth_km = fmax(site->depth_km, 0);
    if (name >= 0 && name < count && network >= 0 && network < count)
        snprintf(site->name, sizeof site->name, "%.8s.%.20s", field[network], field[name]);
    else if (name >= 0 && name < count && field[name][0])
        snprintf(site->name, sizeof site->name, "%.31s", field[name]);
    else
        snprintf(site->name, sizeof site->name, "%d", index + 1);
    /* Names go into CSV files. */
    for (char *c = site->name; *c; c++)
        if (*c == ',' || *c == '"')
            *c = ' ';
    return 0;
}

static int read_rows(struct reader *reader, FILE *file, struct rays_table *table)
{
    char line[4096];
    int room = 0, has_header = 0;
    while (fgets(line, sizeof line, file)) {
        reader->line++;
        if (line[strspn(line, " \t\r\n")] == 0 || (has_header && line[0] == '#'))
            continue;
        if (!strchr(line, '\n') && !feof(file))
            return complain(reader, "the line is longer than 4094 bytes", "");
        if (!has_header) {
            has_header = 1;
            if (read_header(reader, line))
                return -1;
            continue;
        }
        if (table->sites == room) {
            room = room ? 2 * room : 256;
            struct rays_site *more = realloc(table->site, room * sizeof *more);
            if (!more)
                return complain(reader, "out of memory", "");
            table->site = more;
        }
        if (read_row(reader, line, table->sites, &table->site[table->sites]))
            return -1;
        table->sites++;
    }
    reader->line = 0;
    return table->sites ? 0 : complain(reader, reader->events ? "no events" : "no stations", "");
}

int rays_table_read(struct rays_table *table, const char *path, int events, char *error, int error_bytes)
{
    struct reader reader = {.path = path, .events = events, .error = error, .error_bytes = error_bytes};
    *table = (struct rays_table){0, NULL};
    FILE *file = fopen(path, "r");
    if (!file)
        return complain(
            &reader,
            events ? "the table of events cannot be opened" : "the table of stations cannot be opened", "");
    int status = read_rows(&reader, file, table);
    fclose(file);
    if (status)
        rays_table_free(table);
    return status;
}

void rays_table_free(struct rays_table *table)
{
    free(table->site);
    *table = (struct rays_table){0, NULL};
}
