/* Faults that a sanitizer must report, and `nothing`, which has none. .ci/sanitize runs each in a process of its own. */

#include <limits.h>
#include <stdlib.h>

void past_the_end(void)
{
    volatile char *bytes = malloc(64);
    bytes[63] = 1;
    (void)bytes[64];
    free((void *)bytes);
}

void overflow(void)
{
    volatile int most = INT_MAX;
    most = most + 1;
}

static void count(int locked)
{
    int counted = 0;
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 1000; i++) {
        if (locked) {
#pragma omp critical
            counted++;
        } else {
            counted++;
        }
    }
    *(volatile int *)&counted = 0;
}

void race(void) { count(0); }

void nothing(void)
{
    volatile char *bytes = malloc(64);
    bytes[63] = 1;
    free((void *)bytes);
    count(1);
}
