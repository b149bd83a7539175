/* SPDX-License-Identifier: MIT */
/*
 * tests/extra/openblas.c - OpenBLAS's threads, which spin, called from main and from
 * threads of the program's own.
 */
#include "check.h"

#include <cblas.h>

enum { N = 200, CALLERS = 6 };

/* Small integers: exact in any order of addition. */
static void *multiply(void *arg)
{
	double *a = malloc(sizeof(double) * N * N), *b = malloc(sizeof(double) * N * N),
	       *c = malloc(sizeof(double) * N * N);

	for (int i = 0; i < N * N; i++) {
		a[i] = i % 7;
		b[i] = i % 5;
	}
	for (int round = 0; round < 10; round++) {
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c,
			    N);
		for (int row = 0; row < N; row += 37) {
			double want = 0;

			for (int k = 0; k < N; k++)
				want += a[row * N + k] * b[k * N + row];
			CHECK(c[row * N + row] == want);
		}
	}
	free(a);
	free(b);
	free(c);
	return arg;
}

int main(void)
{
	pthread_t threads[CALLERS];

	multiply(NULL);
	for (int i = 0; i < CALLERS; i++)
		threads[i] = start(multiply, NULL);
	multiply(NULL);
	for (int i = 0; i < CALLERS; i++)
		finish(threads[i]);
	return success();
}
