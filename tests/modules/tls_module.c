/* SPDX-License-Identifier: MIT */
/*
 * tests/modules/tls_module.c - a library with thread-local variables, for
 * tests/programs/thread/thread_dlopen.c.  Built once for each way to reach them.
 */
#ifdef INITIAL_EXEC
#define MODEL __attribute__((tls_model("initial-exec")))
#define BIG 64	/* of what libc keeps in reserve */
#else
#define MODEL
#define BIG 20000
#endif

static __thread int value MODEL = 42;
static __thread char big[BIG] MODEL;
__thread const char *module_text MODEL = "initial";

int *module_value(void)
{
	return &value;
}

char *module_big(unsigned *size)
{
	*size = BIG;
	return big;
}

const char **module_text_of_thread(void)
{
	return &module_text;
}
