/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/stdio_calls.c - stdio on pipes, sockets and terminals, where the
 * other end is a thread that takes its time.
 */
#include "sockets.h"

#include <pty.h>
#include <sys/wait.h>
#include <wchar.h>

/* What the other end does: writes these, with a pause after each; then closes. */
struct script {
	int fd;
	const char *const *pieces;
	long long pause;
};

static void *plays(void *arg)
{
	struct script *s = arg;

	for (int i = 0; s->pieces[i]; i++) {
		struct timespec pause = to_timespec(s->pause);

		write_all(s->fd, s->pieces[i], strlen(s->pieces[i]));
		nanosleep(&pause, NULL);
	}
	CHECK_OK(close(s->fd));
	return NULL;
}

static const char *const lines[] = { "one\ntw", "o\nthree ", "3 0x1f\nseven,eight,", "\nnine", NULL };

static FILE *open_playing(enum pair_kind kind, const char *const *pieces, struct script *s,
			  pthread_t *t)
{
	int fd[2];
	FILE *f;

	make_pair(kind, fd);
	*s = (struct script){ fd[1], pieces, 2 * MS };
	*t = start(plays, s);
	f = fdopen(fd[0], "r");
	CHECK(f != NULL);
	return f;
}

static void reading(enum pair_kind kind)
{
	char buf[64], *line = NULL, word[16];
	size_t size = 0;
	struct script s;
	pthread_t t;
	int n, x;
	FILE *f;

	f = open_playing(kind, lines, &s, &t);
	CHECK(fgets(buf, sizeof(buf), f) == buf);
	CHECK_OK(strcmp(buf, "one\n"));
	CHECK_INT(getline(&line, &size, f), 4);
	CHECK_OK(strcmp(line, "two\n"));
	CHECK_INT(fscanf(f, "%15s %d %x", word, &n, (unsigned *)&x), 3);
	CHECK_OK(strcmp(word, "three"));
	CHECK_INT(n, 3);
	CHECK_INT(x, 0x1f);
	CHECK_INT(fgetc(f), '\n');
	CHECK_INT(getdelim(&line, &size, ',', f), 6);
	CHECK_OK(strcmp(line, "seven,"));
	CHECK_INT(getc_unlocked(f), 'e');
	CHECK_INT(ungetc('E', f), 'E');
	CHECK_INT(fread(buf, 1, 7, f), 7);
	CHECK_OK(memcmp(buf, "Eight,\n", 7));
	CHECK(!feof(f));
	/* The last line has no end. */
	CHECK_INT(fread(buf, 1, sizeof(buf), f), 4);
	CHECK(feof(f) && !ferror(f));
	CHECK_INT(fgetc(f), EOF);
	CHECK_INT(getline(&line, &size, f), -1);
	free(line);
	CHECK_OK(fclose(f));
	finish(t);
}

static void wide_and_unbuffered(enum pair_kind kind)
{
	static const char *const pieces[] = { "ab", "c\nd", "ef\n", NULL };
	struct script s;
	wchar_t text[16];
	char buf[16];
	pthread_t t;
	FILE *f;

	f = open_playing(kind, pieces, &s, &t);
	CHECK_OK(setvbuf(f, NULL, _IONBF, 0));
	CHECK(fgets(buf, sizeof(buf), f) == buf);
	CHECK_OK(strcmp(buf, "abc\n"));
	CHECK_INT(fread(buf, 1, 4, f), 4);
	CHECK_OK(memcmp(buf, "def\n", 4));
	CHECK_INT(fgetc(f), EOF);
	CHECK_OK(fclose(f));
	finish(t);

	f = open_playing(kind, pieces, &s, &t);
	CHECK(fgetws(text, COUNT(text), f) == text);
	CHECK_OK(wcscmp(text, L"abc\n"));
	CHECK(fgetwc(f) == L'd');
	CHECK(fgetws(text, COUNT(text), f) == text);
	CHECK_OK(wcscmp(text, L"ef\n"));
	CHECK(fgetwc(f) == WEOF);
	CHECK_OK(fclose(f));
	finish(t);
}

/* ---- writing ------------------------------------------------------------ */

enum { VOLUME = 300000 };	/* more than a pipe or a socket takes at once */

static void *drinks(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[8192];
	size_t total = 0, n, sum = 0;

	while ((n = read_all(fd, buf, sizeof(buf))) > 0) {
		for (size_t i = 0; i < n; i++)
			sum += (unsigned char)buf[i] * ((total + i) % 7 + 1);
		total += n;
		usleep(500);
	}
	CHECK_INT(total, VOLUME);
	CHECK_OK(close(fd));
	return (void *)sum;
}

static void writing(enum pair_kind kind, int mode)
{
	size_t sum = 0, total = 0;
	pthread_t t;
	int fd[2];
	FILE *f;

	make_pair(kind, fd);
	t = start(drinks, (void *)(intptr_t)fd[0]);
	f = fdopen(fd[1], "w");
	CHECK(f != NULL);
	CHECK_OK(setvbuf(f, NULL, mode, mode == _IONBF ? 0 : 4096));
	for (int i = 0; total < VOLUME; i++) {
		char text[1000];
		size_t n = (size_t)snprintf(text, sizeof(text), "%d %0*d\n", i, i % 900 + 1, i);

		if (n > VOLUME - total)
			n = VOLUME - total;
		text[n] = 0;
		if (i % 3 == 0)
			CHECK_INT(fprintf(f, "%s", text), n);
		else if (i % 3 == 1)
			CHECK(fputs(text, f) >= 0);
		else
			CHECK_INT(fwrite(text, 1, n, f), n);
		for (size_t k = 0; k < n; k++)
			sum += (unsigned char)text[k] * ((total + k) % 7 + 1);
		total += n;
	}
	CHECK_OK(fflush(f));
	CHECK(!ferror(f));
	CHECK_OK(fclose(f));
	CHECK(finish(t) == (void *)sum);
}

static void errors(enum pair_kind kind)
{
	char text[100000] = "";
	int fd[2];
	FILE *f;

	signal(SIGPIPE, SIG_IGN);
	make_pair(kind, fd);
	f = fdopen(fd[1], "w");
	CHECK_OK(close(fd[0]));
	errno = 0;
	CHECK_INT(fprintf(f, "nobody listens\n"), 15);
	CHECK_INT(fflush(f), EOF);
	CHECK_INT(errno, EPIPE);
	CHECK(ferror(f));
	errno = 0;
	CHECK(fwrite(text, 1, sizeof(text), f) < sizeof(text));
	CHECK_INT(errno, EPIPE);
	fclose(f);
	signal(SIGPIPE, SIG_DFL);

	make_pair(kind, fd);
	f = fdopen(fd[0], "r");
	CHECK_OK(fcntl(fd[0], F_SETFL, fcntl(fd[0], F_GETFL) | O_NONBLOCK));
	errno = 0;
	CHECK_INT(fgetc(f), EOF);
	CHECK_INT(errno, EAGAIN);
	CHECK(ferror(f) && !feof(f));
	clearerr(f);
	write_all(fd[1], "x", 1);
	CHECK_INT(fgetc(f), 'x');
	CHECK_OK(close(fd[1]));
	CHECK_INT(fgetc(f), EOF);
	CHECK(feof(f));
	CHECK_OK(fclose(f));

	/* Closed below its FILE. */
	make_pair(kind, fd);
	f = fdopen(fd[0], "r");
	CHECK_OK(close(fd[0]));
	errno = 0;
	CHECK_INT(fgetc(f), EOF);
	CHECK_INT(errno, EBADF);
	errno = 0;
	CHECK_INT(fclose(f), EOF);
	CHECK_INT(errno, EBADF);
	close(fd[1]);
}

/* ---- others --------------------------------------------------------------- */

static void terminal(void)
{
	static const char *const typed[] = { "first\nse", "cond\n", "\004", NULL };
	struct script s;
	char buf[64];
	int master, tty;
	pthread_t t;
	FILE *f;

	CHECK_OK(openpty(&master, &tty, NULL, NULL, NULL));
	f = fdopen(tty, "r+");
	CHECK(f != NULL);
	s = (struct script){ dup(master), typed, 5 * MS };
	t = start(plays, &s);
	CHECK(fgets(buf, sizeof(buf), f) == buf);
	CHECK_OK(strcmp(buf, "first\n"));
	CHECK(fgets(buf, sizeof(buf), f) == buf);
	CHECK_OK(strcmp(buf, "second\n"));
	/* End of file, typed: it can be read past. */
	CHECK(fgets(buf, sizeof(buf), f) == NULL);
	CHECK(feof(f));
	finish(t);
	clearerr(f);
	CHECK(fprintf(f, "an answer\n") == 10);
	CHECK_OK(fflush(f));
	fclose(f);
	close(master);
}

static void *runs_commands(void *arg)
{
	int id = (int)(intptr_t)arg, n;
	char command[64], line[64];
	FILE *f;

	snprintf(command, sizeof(command), "sleep 0.02; echo %d; exit %d", id, id % 5);
	f = popen(command, "r");
	CHECK(f != NULL);
	CHECK(fgets(line, sizeof(line), f) == line);
	CHECK_INT(atoi(line), id);
	n = pclose(f);
	CHECK(WIFEXITED(n));
	CHECK_INT(WEXITSTATUS(n), id % 5);

	f = popen("cat >/dev/null; exit 3", "w");
	for (int i = 0; i < 20000; i++)
		CHECK_INT(fprintf(f, "%4d\n", i % 10000), 5);
	n = pclose(f);
	CHECK(WIFEXITED(n));
	CHECK_INT(WEXITSTATUS(n), 3);
	return NULL;
}

static void commands(void)
{
	pthread_t t[10];

	for (int i = 0; i < 10; i++)
		t[i] = start(runs_commands, (void *)(intptr_t)i);
	for (int i = 0; i < 10; i++)
		finish(t[i]);
}

/* A number that a FILE had is used anew, for something else. */
static void numbers_anew(enum pair_kind kind)
{
	int fd[2], again[2];
	char c;
	FILE *f;

	make_pair(kind, fd);
	f = fdopen(fd[0], "r");
	write_all(fd[1], "a", 1);
	CHECK_INT(fgetc(f), 'a');
	CHECK_OK(fclose(f));
	make_pair(kind == PIPE ? SOCKET : PIPE, again);
	CHECK_INT(again[0], fd[0]);
	CHECK_OK(fcntl(again[0], F_SETFL, fcntl(again[0], F_GETFL) | O_NONBLOCK));
	CHECK_ERR(read(again[0], &c, 1), EAGAIN);
	write_all(again[1], "b", 1);
	CHECK_INT(read(again[0], &c, 1), 1);
	CHECK_INT(c, 'b');
	/* freopen and dup2 on the number below a FILE. */
	f = fdopen(again[0], "r");
	f = freopen("/dev/null", "r", f);
	CHECK(f != NULL);
	CHECK_INT(fgetc(f), EOF);
	CHECK_INT(dup2(fd[1], fileno(f)), fileno(f));
	CHECK_OK(fclose(f));
	close(again[1]);
	close(fd[1]);
}

int main(void)
{
	for (enum pair_kind kind = 0; kind < KINDS; kind++) {
		reading(kind);
		wide_and_unbuffered(kind);
		writing(kind, _IOFBF);
		writing(kind, _IOLBF);
		writing(kind, _IONBF);
		errors(kind);
		numbers_anew(kind);
		printf("kind %d\n", kind);
	}
	terminal();
	puts("terminal");
	commands();
	puts("commands");
	return success();
}
