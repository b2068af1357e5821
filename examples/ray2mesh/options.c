/* Reads the command line. */
#include "ray2mesh.h"

#include <stdio.h>
#include <string.h>

int options_read(struct options *options, int argc, char **argv, char error[RAY2MESH_ERROR_BYTES])
{
    const struct {
        const char *name, **value;
    } known[] = {
        {"--model", &options->model},   {"--events", &options->events}, {"--stations", &options->stations},
        {"--phases", &options->phases}, {"--mesh", &options->mesh},     {"--out", &options->out},
    };
    const int count = sizeof known / sizeof *known;
    *options = (struct options){.phases = "P,S,PcP,ScS,PKP,pP,sS", .mesh = "5,5,100"};
    for (int i = 1; i < argc; i += 2) {
        int k = 0;
        while (k < count && strcmp(argv[i], known[k].name))
            k++;
        if (k == count) {
            snprintf(error, RAY2MESH_ERROR_BYTES, "%s: there is no such option", argv[i]);
            return -1;
        }
        if (i + 1 == argc) {
            snprintf(error, RAY2MESH_ERROR_BYTES, "%s: its value is missing", argv[i]);
            return -1;
        }
        *known[k].value = argv[i + 1];
    }
    for (int k = 0; k < count; k++)
        if (!*known[k].value) {
            snprintf(error, RAY2MESH_ERROR_BYTES, "%s is missing", known[k].name);
            return -1;
        }
    return 0;
}
