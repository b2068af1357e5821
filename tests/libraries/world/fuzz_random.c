/* PROGRAM CASES SEED...: a driver for programs that are written for libFuzzer, where there is none: CASES
 * inputs made of the seeds, damaged, cut and put together at random, always the same ones. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n);

enum { MOST_SEEDS = 64, MOST_BYTES = 4096 };

static uint64_t state;

static unsigned draw(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % n;
}

static struct seed {
    unsigned char bytes[MOST_BYTES];
    size_t n;
} seeds[MOST_SEEDS];

/* Writes a piece of some seed; returns its length. */
static size_t piece(int count, unsigned char *to, size_t room)
{
    const struct seed *seed = &seeds[draw((unsigned)count)];
    size_t from = draw(2) ? 0 : draw((unsigned)seed->n + 1), n = seed->n - from;
    if (draw(3) == 0)
        n = draw((unsigned)n + 1);
    n = n < room ? n : room;
    memcpy(to, seed->bytes + from, n);
    return n;
}

static void one(int count)
{
    unsigned char bytes[2 * MOST_BYTES];
    size_t n = 0;
    for (unsigned pieces = 1 + draw(3); pieces > 0; pieces--)
        n += piece(count, bytes + n, sizeof bytes - n);
    for (unsigned k = draw(5); k > 0 && n; k--) {
        size_t at = draw((unsigned)n);
        bytes[at] = (unsigned char)(draw(2) ? draw(256) : bytes[at] ^ (1u << draw(8)));
    }
    /* The sanitizer sees what reads beyond it. */
    unsigned char *copy = malloc(n ? n : 1);
    if (!copy)
        exit(1);
    memcpy(copy, bytes, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

int main(int argc, char **argv)
{
    unsigned long cases = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    int count = 0;
    for (int i = 2; i < argc && count < MOST_SEEDS; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        seeds[count].n = fread(seeds[count].bytes, 1, MOST_BYTES, file);
        fclose(file);
        LLVMFuzzerTestOneInput(seeds[count].bytes, seeds[count].n);
        count++;
    }
    for (unsigned long i = 1; i <= cases && count; i++) {
        state = i * UINT64_C(0x9e3779b97f4a7c15);
        one(count);
    }
    printf("%lu inputs of %d seeds\n", cases, count);
    return count == 0;
}
