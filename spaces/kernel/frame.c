/* Times C = A B.  program A B C m n k runs: reads A (m k numbers) and B (k n) from files, multiplies once and then `runs` times
   more, writes the last product to the file C, and prints the seconds of each of the runs that count as a JSON list. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef @TYPE@ T;

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static T *room(long numbers)
{
    void *found = NULL;
    if (posix_memalign(&found, 64, (size_t)numbers * sizeof(T) + 64) != 0)
        fail("not enough memory");
    return found;
}

@MULTIPLY@

static T *matrix(const char *path, long numbers)
{
    T *found = room(numbers);
    FILE *file = fopen(path, "rb");
    if (!file || fread(found, sizeof(T), (size_t)numbers, file) != (size_t)numbers)
        fail("a matrix cannot be read");
    fclose(file);
    return found;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int count, char **words)
{
    if (count != 8)
        fail("expected A B C m n k runs");
    long m = atol(words[4]), n = atol(words[5]), k = atol(words[6]), runs = atol(words[7]);
    T *A = matrix(words[1], m * k), *B = matrix(words[2], k * n), *C = room(m * n), *first = room(m * n);
    size_t size = (size_t)(m * n) * sizeof(T);
    for (long run = 0; run <= runs; run++) {
        memset(C, 0, size);
        double begun = now();
        multiply(A, B, C, m, n, k);
        double taken = now() - begun;
        if (run == 0)
            memcpy(first, C, size);
        else if (memcmp(first, C, size) != 0) {
            fprintf(stderr, "two runs gave different products\n");
            return 3;
        }
        if (run > 0)
            printf("%s%.9g", run == 1 ? "[" : ", ", taken);
    }
    printf("]\n");
    FILE *file = fopen(words[3], "wb");
    if (!file || fwrite(C, sizeof(T), (size_t)(m * n), file) != (size_t)(m * n) || fclose(file) != 0)
        fail("the product cannot be written");
    return 0;
}
