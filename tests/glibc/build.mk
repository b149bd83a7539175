# SPDX-License-Identifier: MIT
#
# tests/glibc/build.mk - glibc's tests of its threads, against the installed libc
# instead of one built here.
#
#	make -f tests/glibc/build.mk SRC=glibc's-source OUT=directory -k all
#
# What each test needs beyond the ordinary is taken from glibc's own makefiles
# (flags.mk, written by tests/scripts/preload/glibc-tests.sh).  A test that does not compile outside
# of libc leaves no program.

HERE := $(dir $(lastword $(MAKEFILE_LIST)))
CC := gcc
CXX := g++

# Where tests are, first match wins; and further ones, by path, that are about
# threads but live elsewhere.
DIRS := nptl sysdeps/pthread sysdeps/unix/sysv/linux sysdeps/x86_64 rt posix
OTHERS := $(addprefix sysdeps/unix/sysv/linux/,tst-affinity tst-affinity-pid tst-gettid \
		tst-gettid-kill tst-tgkill tst-thread-affinity-pthread tst-epoll tst-ppoll \
		tst-sigtimedwait tst-timerfd tst-pidfd tst-prctl) \
	$(addprefix rt/,tst-aio1 tst-aio2 tst-aio3 tst-aio4 tst-aio5 tst-aio6 tst-aio7 tst-aio8 \
		tst-aio9 tst-aio10 tst-clock tst-clock_nanosleep tst-clock2 tst-cpuclock1 \
		tst-cpuclock2 tst-cputimer1 tst-cputimer2 tst-cputimer3 tst-mqueue1 \
		tst-mqueue2 tst-mqueue3 tst-mqueue5 tst-mqueue6 tst-mqueue8 tst-shm \
		tst-shm-cancel tst-timer tst-timer2 tst-timer3 tst-timer4 tst-timer5 \
		tst-timer-sigmask) \
	$(addprefix posix/,tst-_Fork tst-getopt-cancel tst-nanosleep tst-fork tst-spawn2 \
		tst-spawn3 tst-spawn4 tst-waitid tst-wait4 tst-wait3 tst-vfork1 tst-vfork2 \
		tst-vfork3 tst-preadwrite tst-pause tst-execve1) \
	$(addprefix stdlib/,tst-tls-atexit test-cxa_atexit-race2 \
		tst-arc4random-thread tst-arc4random-fork test-atexit-race test-at_quick_exit-race \
		test-cxa_atexit-race test-on_exit-race) \
	nss/tst-cancel-getpwuid_r debug/tst-read-chk-cancel math/test-fenv-tls \
	iconv/tst-iconv-mt signal/tst-sigsuspend signal/tst-sigset2 \
	libio/tst-popen1 libio/tst-closeall login/tst-pututxline-lockfail \
	socket/tst-accept4 misc/tst-select misc/tst-pselect misc/tst-preadvwritev \
	misc/tst-preadvwritev2 io/tst-fcntl io/tst-posix_fallocate \
	malloc/tst-malloc-thread-exit malloc/tst-malloc-thread-fail \
	malloc/tst-malloc-fork-deadlock malloc/tst-mallocfork malloc/tst-mallocfork2 \
	malloc/tst-mallocfork3

# Static programs are not ours; time64 is for 32-bit machines; skeletons are
# included by others, mod is a shared library.
not_tests := %-static %-time64 %-time64.c %mod %moda %modb %modc %modd %mode %modf %aux \
	tst-atfork2mod tst-skeleton% tst-%-skeleton tst-cancel4-common \
	tst-cancel-self-cleanup tst-tls3-malloc-mod tst-audit-threads-mod1 \
	tst-audit-threads-mod2 tst-%mod1 tst-%mod2 tst-oddstacklimit tst-pthread-gdb-attach%

tests := $(filter-out $(not_tests),$(sort \
	$(basename $(notdir $(wildcard $(SRC)/nptl/tst-*.c $(SRC)/nptl/tst-*.cc $(SRC)/sysdeps/pthread/tst-*.c))) \
	$(notdir $(basename $(wildcard $(addprefix $(SRC)/,$(addsuffix .c,$(OTHERS))))))))

modules := tst-tls3mod tst-tls5mod tst-tls5moda tst-tls5modb tst-tls5modc tst-tls5modd \
	tst-tls5mode tst-tls5modf tst-stack4mod tst-execstack-mod tst-compat-forwarder-mod \
	tst-atfork2mod tst-tls4moda tst-tls4modb tst-_res1mod1 tst-_res1mod2 tst-fini1mod \
	tst-create1mod tst-atfork3mod tst-atfork4mod tst-join7mod

vpath %.cc $(SRC)/nptl
vpath %.c $(addprefix $(SRC)/,$(DIRS) $(sort $(dir $(OTHERS))) elf)

-include $(OUT)/flags.mk

# What glibc's own build has from libc-symbols.h and the generated headers is in
# include/ here.  The source's own include/ is for libc itself.
COMMON := -O2 -g -w -pthread -D_GNU_SOURCE -D_LIBC_REENTRANT \
	-DMODULE_NAME=testsuite -DOBJPFX='"./"' -include $(HERE)include/libc-symbols.h -I$(HERE)include \
	-I$(OUT)/include \
	-iquote $(SRC)/nptl -iquote $(SRC)/sysdeps/pthread -iquote $(SRC)/sysdeps/unix/sysv/linux \
	-idirafter $(SRC)/nptl -idirafter $(SRC)
FLAGS := -std=gnu11 -fgnu89-inline $(COMMON)
PATHS := -DSRCDIR_PATH='"$(SRC)"' -DOBJDIR_PATH='"$(OUT)"' -DOBJDIR_ELF_LDSO_PATH='"/"' \
	-DINSTDIR_PATH='"/usr"' -DLIBDIR_PATH='"/usr/lib"' -DBINDIR_PATH='"/usr/bin"' \
	-DSBINDIR_PATH='"/usr/sbin"' -DSLIBDIR_PATH='"/lib"' -DROOTSBINDIR_PATH='"/sbin"' \
	-DCOMPLOCALEDIR_PATH='"/usr/lib/locale"'

support := $(filter-out $(SRC)/support/%-container.c $(SRC)/support/links-% \
	$(SRC)/support/tst-% $(SRC)/support/test-% $(SRC)/support/README% \
	$(SRC)/support/%_main.c $(SRC)/support/echo-% $(SRC)/support/%-time64.c \
	$(SRC)/support/resolv_response% $(SRC)/support/check_% \
	$(SRC)/support/support_path_support_time64.c \
	$(SRC)/support/support_socket_so_timestamp_time64.c,$(wildcard $(SRC)/support/*.c)) \
	$(SRC)/support/support_test_main.c
support_objects := $(patsubst $(SRC)/support/%.c,$(OUT)/support/%.o,$(support))

# It waits until /proc/self/task has one entry, or by the clock: the runtime's own
# kernel threads never leave.
FLAGS-support_wait_for_thread_exit := -U__linux__

.PHONY: all
all: $(addprefix $(OUT)/bin/,$(tests)) $(addprefix $(OUT)/bin/,$(addsuffix .so,$(modules)))

$(OUT)/support/%.o: $(SRC)/support/%.c
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) $(FLAGS-$*) $(PATHS) -I$(SRC)/support -c $< -o $@

$(OUT)/libsupport.a: $(support_objects)
	@rm -f $@
	@ar rcs $@ $^

# glibc's makefiles name flags after the source file or the object.
flags_of = $(CFLAGS-$1.c) $(CFLAGS-$1.o) $(CPPFLAGS-$1.c)

$(OUT)/bin/%.so: %.c $(OUT)/flags.mk
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) $(call flags_of,$*) -fPIC -shared $< $(LDFLAGS-$*.so) -o $@ \
		2>$(OUT)/bin/$*.so.log || { rm -f $@; echo "not built: $*.so"; exit 1; }
	@rm -f $(OUT)/bin/$*.so.log

$(OUT)/bin/%: %.c $(OUT)/libsupport.a $(OUT)/flags.mk
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) $(call flags_of,$*) -iquote $(dir $<) $< $(AUX-$*) $(OUT)/libsupport.a \
		$(addprefix $(OUT)/bin/,$(MODULES-$*)) $(LDFLAGS-$*) $(LDLIBS-$*) -ldl -lrt -lm \
		-Wl,-rpath,$(OUT)/bin -o $@ \
		2>$(OUT)/bin/$*.log || { rm -f $@; echo "not built: $*"; exit 1; }
	@rm -f $(OUT)/bin/$*.log

$(OUT)/bin/%: %.cc $(OUT)/libsupport.a $(OUT)/flags.mk
	@mkdir -p $(@D)
	@$(CXX) $(COMMON) $(call flags_of,$*) -iquote $(dir $<) $< $(OUT)/libsupport.a \
		$(LDFLAGS-$*) $(LDLIBS-$*) -o $@ \
		2>$(OUT)/bin/$*.log || { rm -f $@; echo "not built: $*"; exit 1; }
	@rm -f $(OUT)/bin/$*.log

.DELETE_ON_ERROR:
.SECONDARY:
