# SPDX-License-Identifier: MIT
#
# Builds under build/ only.  V=1 shows commands.
#
#	all		the library, the launcher and its tools (the default)
#	demo		a threaded server, natively and as fibers, in under a minute
#	check		every test; ends in "N passed, N failed"
#	check-all	the same, the programs in every mode, and those that need big
#			packages: Rust, Go, oneTBB, OpenBLAS
#	check-static, check-unit, check-programs, check-scripts	parts of it
#	aarch64		the library, for another CPU
#	check-aarch64	its unit tests and the programs there, by qemu-user (minutes)
#	check-glibc	glibc's own tests of its threads (MODES=fz,fz1,fz8; minutes)
#	bench		programs of others, an echo server, threads and locks, natively and as
#			fibers; an echo server also against plain io_uring.  QUICK=1: some of the
#			programs, two minutes
#	stress		the programs in a loop, MINUTES=30 of it, MODES=epoll,old
#	soak		HOURS=8 of the programs with random processors, backends, faults, load
#	model		the schedule explorer (tests/model/README.md)
#	explore		HOURS=8 of it, with new seeds
#	explore-all	each of its runs with BOUND=2 deviations, of all scenarios or SCENARIOS="mutex2 yield"
#	check-planted	does it find each fault of tests/model/planted? (minutes)
#	model-coverage	which edges of the explored files does it take? (minutes)
#	fuzz		"fiberize check" on all of /usr/bin, and on FILES=100000
#			damaged programs; each parser for SECONDS=600 (tests/fuzz/README.md)
#	install, uninstall	with PREFIX and DESTDIR
#	deb, deb-arm64	a Debian package of it, for this CPU or for arm64
#	oci, oci-all	an OCI image with the library, for this CPU, or for amd64 and arm64: build/oci
#	check-oci	is it the same each time, and does a container run with it? In 3 minutes at most
#	fleet		four servers behind HAProxy, one killed and one upgraded under load, natively and
#			as fibers; their figures and alerts in Prometheus; in 3 minutes at most
#	clean
#
# demo, check, bench, stress and soak install missing Debian packages
# (scripts/dev/deps.sh), or name them; all needs what "deps.sh -n build" names.

PREFIX ?= /usr/local
DESTDIR ?=
ifeq ($(origin CC),default)
CC := gcc
endif
MINUTES ?= 30
FILES ?= 100000
SECONDS ?= 600

VERSION := 0.1.0
# DEBUG=1: lock ranks and slow assertions are checked; FAULTS=1: FZ_FAULTS makes the kernel
# fail (runtime/base/fault.h).  Each in a directory of its own.
B := build$(if $(DEBUG),/debug)$(if $(FAULTS),/faults)
VARIANT := $(if $(DEBUG),-DFZ_DEBUG) $(if $(FAULTS),-DFZ_FAULTS)
CPU := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))

# One job per CPU, unless -j is given.
ifeq ($(MAKELEVEL),0)
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif
endif

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
# -s: print errors only.
say = @$(if $(findstring s,$(firstword -$(MAKEFLAGS))),:,echo)
MAKEFLAGS += --no-print-directory
endif

# The same bytes in whatever directory they are made: debug symbols, and so build ids, name the source.
SAME := '-ffile-prefix-map=$(CURDIR)=.'
# Whoever says a version has it from here: one object of the library, and the tools.
SAY_VERSION := -DFZ_VERSION='"$(VERSION)"'

WARN := -Wall -Wextra -Wmissing-prototypes -Wshadow -Werror

# -fPIC, hidden, initial-exec: one object for the .so and the .a; thread-local
#   variables at a fixed distance from the TCB (runtime/fiber/fiber.h).
# -U_FORTIFY_SOURCE: otherwise our bodies would call the __*_chk names that they define.
# -fno-omit-frame-pointer, unwind tables: pthread_exit unwinds through our functions.
# -fno-delete-null-pointer-checks: libc's prototypes say nonnull, but programs pass NULL,
#   and the kernel must report EFAULT.
# No LTO: it would optimise across the assembly that changes the thread pointer.
CFLAGS_ALL := -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -ftls-model=initial-exec \
	-U_FORTIFY_SOURCE -fno-omit-frame-pointer -fasynchronous-unwind-tables \
	-fexceptions -fno-delete-null-pointer-checks -fno-lto $(WARN) -MMD -MP \
	-D_GNU_SOURCE $(VARIANT) -I. -iquote arch/$(CPU) $(SAME) $(CFLAGS)

ARCH_SRC := $(wildcard arch/$(CPU)/*.c arch/$(CPU)/*.S)
# The reader of profiles is the launcher's and the stub's alone.
RUNTIME_SRC := $(filter-out runtime/base/profile.c,$(wildcard runtime/*/*.c))
PRELOAD_SRC := $(filter-out preload/stub/%,$(wildcard preload/*.c preload/*/*.c))
RUNTIME_OBJ := $(patsubst %,$(B)/%.o,$(basename $(ARCH_SRC) $(RUNTIME_SRC)))
PRELOAD_OBJ := $(patsubst %,$(B)/%.o,$(basename $(PRELOAD_SRC)))

# What /etc/ld.so.preload names, for 64-bit programs, and for those of 32 bits where there are some.
STUB := $(B)/libfiberize-preload.so $(if $(filter x86_64,$(CPU)),$(B)/lib32/libfiberize-preload.so)
LIBRARY := $(B)/libfiberize.so $(B)/libfz_runtime.a $(STUB) $(B)/loader-links
# Files that "fiberize bench" reads and runs.
BENCH_SRC := $(addprefix scripts/bench/,bench.sh figures.awk median.awk verdict.awk wrk.lua) \
	$(wildcard scripts/bench/report/*.awk scripts/bench/report/*.gp scripts/bench/report/*.inc)
BENCH_TEXT := $(notdir $(BENCH_SRC)) commit
# What "fiberize enable" reads and runs.
SERVICE_TEXT := service.sh effect.sh environment.awk filter.awk unit.awk unit.sh
# What "fiberize kubernetes" reads and runs.
KUBERNETES_TEXT := $(patsubst scripts/kubernetes/%,kubernetes/%,$(wildcard scripts/kubernetes/*.yaml scripts/kubernetes/*/*.yaml))
TOOLS := $(B)/fiberize $(B)/gdb.py $(addprefix $(B)/libexec/,$(BENCH_TEXT) $(SERVICE_TEXT) kubernetes.sh $(KUBERNETES_TEXT) \
	echo_client measure inspect)

.PHONY: all library
all: $(LIBRARY) $(TOOLS)
library: $(LIBRARY)

$(B)/%.o: %.c Makefile
	$(say) "  CC      $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -c $< -o $@

$(B)/runtime/inspect/version.o: CFLAGS_ALL += $(SAY_VERSION)

$(B)/%.o: %.S Makefile
	$(say) "  AS      $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -c $< -o $@

$(B)/libfz_runtime.a: $(RUNTIME_OBJ)
	$(say) "  AR      $@"
	$(Q)rm -f $@ && ar rcs $@ $^

# The library as if of the next release: for tests of what happens when it is replaced.
NEXT := $(B)/next/libfiberize.so
$(B)/next/version.o: runtime/inspect/version.c runtime/inspect/version.h Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -DFZ_VERSION='"$(VERSION)+next"' -c $< -o $@

# Its functions have other names here, since the library takes some of them over
# (preload/thread/own_ring.c); runtime/backend/liburing.h has these names.
LIBURING := $(firstword $(wildcard $(patsubst -L%,%/liburing.a,$(filter -L%,$(LDFLAGS)))) \
	$(shell $(CC) -print-file-name=liburing.a))
$(B)/liburing.a: $(LIBURING) Makefile
	@mkdir -p $(@D)
	$(Q)nm -g --defined-only $< 2>/dev/null | awk 'NF == 3 { print $$3, "fz_" $$3 }' | sort -u >$@.names
	$(Q)$(shell $(CC) -print-prog-name=objcopy) --redefine-syms=$@.names $< $@

# initfirst: our constructor runs before other libraries' constructors, which may call us.
# Bsymbolic-functions: we call our own bodies, even if others define the name (redirect.c).
# liburing as an archive: it makes raw system calls, and users need not install it.
$(B)/libfiberize.so: $(PRELOAD_OBJ) $(RUNTIME_OBJ)
$(NEXT): $(PRELOAD_OBJ) $(filter-out %/version.o,$(RUNTIME_OBJ)) $(B)/next/version.o
$(B)/libfiberize.so $(NEXT): $(B)/exports.map $(B)/liburing.a
	$(say) "  LD      $@"
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) $(LDFLAGS) $(B)/liburing.a \
		-Wl,-z,defs -Wl,-z,now -Wl,-z,initfirst -Wl,-Bsymbolic-functions \
		-Wl,-soname,libfiberize.so \
		-Wl,--version-script=$(B)/exports.map

$(B)/exports.map: preload/topics.def preload/rungs.def preload/symbols.def scripts/dev/gen-symbols.sh \
		scripts/dev/symbols.awk
	@mkdir -p $(@D)
	$(Q)scripts/dev/gen-symbols.sh --exports > $@.tmp && mv $@.tmp $@

# The stub: no libc, so nothing that needs one (a stack protector, TLS); shadow stacks stay possible.  Few
# segments, and no -z relro, because each is a system call in every process of the machine.
STUB_FLAGS := -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -ffreestanding -fno-builtin -fno-stack-protector \
	-U_FORTIFY_SOURCE -fno-asynchronous-unwind-tables -fno-lto -ffunction-sections -fdata-sections $(WARN) \
	-D_GNU_SOURCE $(if $(filter x86_64,$(CPU)),-fcf-protection=full,-mbranch-protection=standard) \
	-I. -iquote arch/$(CPU) -iquote $(B)/stub $(SAME) $(CFLAGS)
# The launcher and the stub read profiles alike; of options.c the stub leaves out what is for people.
PROFILE_SRC := $(addprefix runtime/base/,options.c pattern.c profile.c)
PROFILE_DEP := $(PROFILE_SRC:.c=.h) runtime/base/options.def
STUB_SRC := $(filter-out %/other_class.c,$(wildcard preload/stub/*.c)) $(PROFILE_SRC)
STUB_LINK := -shared -nostdlib -Wl,-z,now -Wl,-z,norelro -Wl,-z,noseparate-code -Wl,--hash-style=both \
	-Wl,-soname,libfiberize-preload.so
# Runs while the library is built, maybe for another CPU.
HOSTCC ?= gcc

$(B)/stub/gen-fit: scripts/dev/gen-fit.c preload/stub/image.h Makefile
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -std=gnu11 -O2 $(WARN) -I. $< -o $@

$(B)/stub/fit.h: $(B)/libfiberize.so $(B)/stub/gen-fit
	$(Q)$(B)/stub/gen-fit $< >$@.tmp && mv $@.tmp $@

$(B)/libfiberize-preload.so: $(STUB_SRC) $(wildcard preload/stub/*.h arch/*.h arch/$(CPU)/*.h) \
		$(PROFILE_DEP) $(B)/stub/fit.h Makefile
	$(say) "  CCLD    $@"
	$(Q)$(CC) $(STUB_FLAGS) $(STUB_SRC) -o $@ $(STUB_LINK) -Wl,-z,defs -Wl,-z,initfirst -Wl,--gc-sections

$(B)/lib32/libfiberize-preload.so: preload/stub/other_class.c Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) -m32 -O2 -fPIC $(WARN) $(SAME) $< -o $@ $(STUB_LINK)

# What $$LIB stands for: the end of the directory of libc, for this glibc's loader; for other loaders of this CPU; and for
# those of 32-bit programs.
LIB_OWN = $(or $(patsubst %,lib/%,$(shell $(CC) -print-multiarch 2>/dev/null)),$(notdir $(patsubst %/,%,$(dir \
	$(realpath $(shell $(CC) -print-file-name=libc.so.6))))),lib64)
LIB_STUB = $(sort $(LIB_OWN) lib64)
LIB_STUB32 = $(if $(filter x86_64,$(CPU)),$(filter-out $(LIB_STUB),lib/i386-linux-gnu lib32 lib))
# A glibc that is not the system's reads lib. So do 32-bit programs where those of 64 bits read lib64.
LIB_OTHER = $(filter-out $(LIB_OWN),lib64 $(if $(filter lib64,$(LIB_OWN)),,lib))
LIB_ALL = $(sort $(LIB_STUB) $(LIB_STUB32) $(LIB_OTHER))

# $(call LOADER_LINKS,DIR): links DIR/$$LIB/libfiberize.so, for LD_PRELOAD, by which loaders find what fits: this glibc's
# the library; one with another $$LIB the stub, because the library may need a newer glibc; those of 32-bit programs a library
# that does nothing.  The loader of musl does not expand $$LIB, and ignores a library that is missing.  An older glibc with
# the same $$LIB finds the library, too, and ends the program: nothing in the name tells them apart.
LOADER_LINKS = link() { install -d $(1)/"$$2" && ln -sfr $(1)/"$$1" $(1)/"$$2/libfiberize.so"; }; \
	link libfiberize.so $(LIB_OWN) && for dir in $(LIB_OTHER); do link libfiberize-preload.so $$dir || exit; done && \
	for dir in $(filter-out $(LIB_OTHER),$(LIB_STUB32)); do link lib32/libfiberize-preload.so $$dir || exit; done

$(B)/loader-links: Makefile
	@mkdir -p $(@D)
	$(Q)$(call LOADER_LINKS,$(B))
	$(Q)touch $@

# ---- the launcher and what "fiberize bench" and "fiberize check" are made of:
# ordinary programs, with none of the library's flags.
TOOL_FLAGS := -O2 -g -Wall -Wextra -MMD -MP $(SAME) $(CFLAGS)

vpath %.awk scripts/bench scripts/bench/report
vpath %.gp scripts/bench/report
vpath %.inc scripts/bench/report
vpath %.lua scripts/bench
vpath bench.sh scripts/bench
$(addprefix $(B)/libexec/,$(notdir $(BENCH_SRC))): $(B)/libexec/%: %
	@mkdir -p $(@D)
	$(Q)install -m 644 $< $@

# What "fiberize bench" reports of itself; written when it is another commit than before.
.PHONY: look-at-commit
$(B)/libexec/commit: look-at-commit
	@mkdir -p $(@D)
	$(Q)git describe --always --dirty=,\ modified 2>/dev/null >$@.new || echo unknown >$@.new
	$(Q)cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(addprefix $(B)/libexec/,$(SERVICE_TEXT)): $(B)/libexec/%: scripts/service/%
	@mkdir -p $(@D)
	$(Q)install -m 644 $< $@

$(B)/libexec/kubernetes.sh: scripts/kubernetes/kubernetes.sh
	$(Q)install -D -m 644 $< $@
$(addprefix $(B)/libexec/,$(KUBERNETES_TEXT)): $(B)/libexec/%: scripts/%
	$(Q)install -D -m 644 $< $@

# The program of the OCI image, in which there is no libc.
$(B)/install: scripts/kubernetes/install.c Makefile
	@echo "  CCLD    $@"
	$(Q)$(CC) -std=gnu11 $(WARN) -D_GNU_SOURCE -Os -static -o $@ $<

# scripts/check/ examines programs; runtime/base/ has the options and the reader of profiles.
CHECK_SRC := $(wildcard scripts/check/*.c scripts/elf/*.c) $(PROFILE_SRC)
LAUNCH_SRC := $(wildcard scripts/launch/*.c scripts/machine/*.c) $(CHECK_SRC)
LAUNCH_DEP := $(wildcard scripts/launch/*.h scripts/launch/*.def scripts/machine/*.h scripts/check/*.h scripts/elf/*.h) \
	scripts/check/calls.def scripts/inspect/commands.def preload/rungs.def preload/symbols.def $(PROFILE_DEP) Makefile
LAUNCH_FLAGS := -std=gnu11 $(WARN) -D_GNU_SOURCE $(SAY_VERSION) $(SAME) -I.

$(B)/fiberize: $(LAUNCH_SRC) $(LAUNCH_DEP)
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -g $(LAUNCH_FLAGS) $(CFLAGS) $(LAUNCH_SRC) -o $@ $(LDFLAGS) -lelf -lm -pthread

$(B)/libexec/echo_client: scripts/bench/echo_client.c scripts/bench/echo_conn.c scripts/bench/http_answer.c Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) -D_GNU_SOURCE -MF $@.d -I. $(filter %.c,$^) -o $@

# "fiberize ps", "bt", "stat", "top" and "trace"; libdw unwinds, libstdc++ demangles.
$(B)/libexec/inspect: $(wildcard scripts/process/*.[ch] scripts/inspect/*.[ch] scripts/counters/*.[ch] \
		scripts/trace/*.[ch] scripts/machine/processes.[ch] scripts/machine/measured.[ch] scripts/inspect/*.def scripts/top/*.[ch] runtime/inspect/*.h runtime/inspect/*.def runtime/base/counters.[hd]* runtime/base/die.h) preload/rungs.def Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE $(SAY_VERSION) -I. $(SAME) $(CFLAGS) $(filter %.c,$^) -o $@ \
		$(LDFLAGS) -ldw -lelf -ljson-c -lstdc++ $(shell pkg-config --libs ncursesw 2>/dev/null || echo -lncursesw -ltinfo) -lm -pthread

# One file, as gdb loads it with the library.
$(B)/gdb.py: scripts/inspect/gdb.py scripts/inspect/gdb_commands.py Makefile
	$(say) "  GEN     $@"
	@mkdir -p $(@D)
	$(Q)cat $(filter %.py,$^) >$@.new && mv $@.new $@

$(B)/libexec/measure: $(addprefix scripts/bench/,measure.c children.c descriptors.c keep.c proc.c) \
		$(addprefix scripts/machine/,measured.c processes.c) Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_FLAGS) -D_GNU_SOURCE -MF $@.d -I. $(filter %.c,$^) -o $@

# ---- tests
#
# The test programs do not use the library's headers or flags: they are ordinary programs.
PROGRAM_HEADERS := $(wildcard tests/programs/*.h)
PROGRAM_FLAGS := -O2 -g -pthread -Wall -iquote tests/programs

# Sources are in rooms, binaries are not, so each name must be unique.
vpath %.c $(wildcard tests/programs/* tests/unit/*) tests/extra tests/helpers tests/modules tests/targets
vpath %.cc $(wildcard tests/programs/*) tests/extra
in_programs = $(addprefix $(B)/tests/programs/,$(basename $(notdir $(1))))
PROGRAMS := $(call in_programs,$(wildcard tests/programs/*/*.c tests/programs/*/*.cc))
# Libraries that programs load: one for each model of thread-local storage, one that needs
# executable stacks, and one that makes threads.
MODULES := $(patsubst %,$(B)/tests/programs/tls_module_%.so,gd desc ie) \
	$(addprefix $(B)/tests/programs/,stack_module.so thread_module.so)
# aarch64 uses TLS descriptors by default; its compilers do not know the option.
FLAGS_tls_module_desc := $(if $(filter x86_64,$(CPU)),-mtls-dialect=gnu2)
FLAGS_tls_module_ie := -DINITIAL_EXEC

$(B)/tests/programs/tls_module_%.so: tests/modules/tls_module.c Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_FLAGS) -shared -fPIC $(FLAGS_tls_module_$*) $< -o $@

$(B)/tests/programs/stack_module.so: tests/modules/stack_module.c $(PROGRAM_HEADERS) Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_FLAGS) -shared -fPIC -z execstack $< -o $@

$(B)/tests/programs/thread_module.so: tests/modules/thread_module.c $(PROGRAM_HEADERS) Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_FLAGS) -shared -fPIC $< -o $@

# Preloaded in some modes of tests/run.sh.
LATE_THREADS := $(B)/tests/helpers/late_threads.so

$(LATE_THREADS): tests/helpers/late_threads.c Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_FLAGS) -shared -fPIC $< -o $@

# Preloaded into a tool that looks at a process; waits_in is loaded by the process.
TOOL_MODULES := $(patsubst %,$(B)/tests/helpers/%.so,lost_reads changes waits_in)

$(TOOL_MODULES): $(B)/tests/helpers/%.so: tests/targets/%.c Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_FLAGS) -shared -fPIC $< -o $@

# Test programs that need big packages, so that only "make check-all" runs them.
EXTRA := $(call in_programs,$(wildcard tests/extra/*.*))
URING_SERVER := $(B)/bench/uring_server
THREADS_BENCH := $(B)/bench/threads

# -O1: there are many, and more takes the compiler a third longer.
$(B)/tests/programs/%: %.c $(PROGRAM_HEADERS) Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_FLAGS) -O1 $< -o $@ $(FLAGS_$*)

# Flags of single programs.
FLAGS_openmp := -fopenmp
FLAGS_stack_code := -z execstack
FLAGS_cancel_bare := -fno-exceptions -fno-asynchronous-unwind-tables
FLAGS_own_ring := -luring
FLAGS_openblas := -lopenblas
FLAGS_tbb := -ltbb

# -g1: names and lines for backtraces; what C++'s headers make of types takes as long again.
$(B)/tests/programs/%: %.cc $(PROGRAM_HEADERS) Makefile
	$(say) "  CXXLD   $@"
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++20 $(PROGRAM_FLAGS) -O1 -g1 $< -o $@ $(FLAGS_$*)

$(B)/tests/programs/%: tests/extra/%.rs Makefile
	$(say) "  RUSTC   $@"
	@mkdir -p $(@D)
	$(Q)env -u MAKEFLAGS -u MFLAGS rustc --edition 2021 -O $< -o $@

$(B)/tests/programs/%: tests/extra/%.go Makefile
	$(say) "  GO      $@"
	@mkdir -p $(@D)
	$(Q)GOCACHE=$(abspath $(B)/tests/go) CGO_ENABLED=1 go build -o $@ $<

$(URING_SERVER): scripts/bench/uring_server.c scripts/bench/number.h Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_FLAGS) -D_GNU_SOURCE -I. $< -o $@ -luring

$(THREADS_BENCH): scripts/bench/threads.c scripts/bench/threads_time.h scripts/bench/number.h Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_FLAGS) -D_GNU_SOURCE -I. $< -o $@

# Helpers of the scripts in tests/, and processes that they look at.
HELPERS := $(patsubst %.c,$(B)/tests/helpers/%,$(notdir $(filter-out %/late_threads.c %/lost_reads.c \
	%/changes.c %/waits_in.c %/fuzz.c,$(wildcard tests/helpers/*.c tests/targets/*.c))))

$(HELPERS): $(B)/tests/helpers/%: %.c $(PROGRAM_HEADERS) $(wildcard tests/helpers/*.h) Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_FLAGS) $< -o $@

# Every call in it has a frame.
PLACES := $(B)/tests/helpers/places
$(PLACES): tests/targets/places.cc Makefile
	$(say) "  CXXLD   $@"
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++20 $(PROGRAM_FLAGS) -fno-optimize-sibling-calls $< -o $@

# Ends a test that hangs.
WATCH := $(B)/tests/helpers/watch

# Runs the readers of "fiberize check" on damaged files.
FUZZ := $(B)/tests/helpers/fuzz

$(FUZZ): tests/helpers/fuzz.c $(CHECK_SRC) $(LAUNCH_DEP)
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
		$(LAUNCH_FLAGS) $< $(CHECK_SRC) -o $@ -lelf

# arch/ alone, twice: here, and with another CPU's compiler for qemu-user.
ARCH_TEST_FLAGS := -std=gnu11 -O2 -g -fPIC -fno-omit-frame-pointer \
	-fasynchronous-unwind-tables $(WARN) -I.
ARCH_TEST := $(B)/tests/arch/test_arch
AARCH64_TEST := $(B)/tests/arch/test_arch_aarch64
AARCH64_CC := aarch64-linux-gnu-gcc
arch_test_src = $(wildcard arch/$(1)/*.[cS] tests/arch/$(1)/*.[cS])
arch_test_dep = $(wildcard arch/*.h arch/$(1)/*.h tests/plain/*.h tests/arch/*.h tests/arch/$(1)/*.h) \
	Makefile

$(ARCH_TEST): $(call arch_test_src,$(CPU)) $(wildcard tests/arch/test_*.c) \
		$(call arch_test_dep,$(CPU))
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(ARCH_TEST_FLAGS) -iquote arch/$(CPU) -iquote tests/arch/$(CPU) \
		$(filter %.c %.S,$^) -o $@ -lcriterion -pthread

$(AARCH64_TEST): $(call arch_test_src,aarch64) $(wildcard tests/arch/*.c tests/plain/*.c) \
		$(call arch_test_dep,aarch64)
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(AARCH64_CC) $(ARCH_TEST_FLAGS) -static -DFZ_TEST_PLAIN \
		-iquote arch/aarch64 -iquote tests/arch/aarch64 \
		$(filter %.c %.S,$^) -o $@ -pthread

# tests/unit/ROOM/test_X.c tests runtime/ROOM/X, or scripts/ROOM/X; all unit tests link tests/unit/*.c.
UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
STRESS_SRC := $(wildcard tests/unit/*/stress_*.c)
UNIT_HELP := $(wildcard tests/unit/*.c)
# -O1, because these are much of what "make check" compiles; what they test has flags of its own.
UNIT_FLAGS := -std=gnu11 -O1 -g -fno-omit-frame-pointer $(WARN) -D_GNU_SOURCE \
	$(VARIANT) -I. -iquote arch/$(CPU) -iquote tests/unit
UNIT_LIBS := -lcriterion
UNITS := $(patsubst %.c,$(B)/tests/unit/%,$(notdir $(UNIT_SRC) $(STRESS_SRC)))

# PLAIN=1 replaces Criterion, where it is missing, by tests/plain.
ifdef PLAIN
UNIT_HELP += tests/plain/plain.c
UNIT_FLAGS += -DFZ_TEST_PLAIN -isystem tests/plain
UNIT_LIBS :=
endif

# Compiled once; stress tests, whose flags are others, compile these again.
UNIT_OBJ := $(UNIT_HELP:%.c=$(B)/%.o)

$(UNIT_OBJ): $(B)/%.o: %.c $(wildcard tests/unit/*.h) $(B)/libfz_runtime.a Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(UNIT_FLAGS) $(CFLAGS) -c $< -o $@

# Stress tests of lock-free code, on kernel threads only, under ThreadSanitizer.
TSAN_OBJ := $(patsubst %,$(B)/tsan/%.o,$(basename $(RUNTIME_SRC) $(ARCH_SRC)))
TSAN_FLAGS := -Wno-tsan -fsanitize=thread -fno-delete-null-pointer-checks -MMD -MP

$(B)/tsan/runtime/inspect/version.o: TSAN_FLAGS += $(SAY_VERSION)

$(B)/tsan/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(UNIT_FLAGS) $(TSAN_FLAGS) -c $< -o $@

$(B)/tsan/%.o: %.S Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(UNIT_FLAGS) -c $< -o $@

$(B)/tests/unit/stress_%: stress_%.c $(UNIT_HELP) $(wildcard tests/unit/*.h) \
		$(TSAN_OBJ) $(B)/liburing.a Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(UNIT_FLAGS) $(TSAN_FLAGS) $(filter %.c %.o,$^) -o $@ $(LDFLAGS) $(B)/liburing.a \
		-lm -pthread

$(B)/tests/unit/test_profile: runtime/base/profile.c
$(B)/tests/unit/%: %.c $(UNIT_OBJ) $(wildcard tests/unit/*.h) \
		$(B)/libfz_runtime.a $(B)/liburing.a Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(UNIT_FLAGS) $(CFLAGS) $(filter %.c %.o,$^) -o $@ \
		$(B)/libfz_runtime.a $(LDFLAGS) $(B)/liburing.a $(UNIT_LIBS) -lm -pthread

# The library and its tests for aarch64 (tests/scripts/runtime/aarch64.sh): built by a cross
# compiler, with Debian's own libraries, and without C++.
AARCH64_ROOT := $(B)/aarch64-sysroot
AARCH64_PARTS := $(patsubst %.c,tests/programs/%,$(notdir $(wildcard tests/programs/*/*.c))) \
	$(patsubst %.c,tests/unit/%,$(notdir $(UNIT_SRC)))

# Debian's libraries need each other; some are in /lib.
AARCH64_LIB := $(AARCH64_ROOT)/usr/lib/aarch64-linux-gnu
AARCH64_LIB2 := $(AARCH64_ROOT)/lib/aarch64-linux-gnu
AARCH64_MAKE = $(MAKE) CC=$(AARCH64_CC) B=$(B)/aarch64 \
	CFLAGS='-isystem $(AARCH64_ROOT)/usr/include -isystem $(AARCH64_ROOT)/usr/include/aarch64-linux-gnu' \
	LDFLAGS='-L$(AARCH64_LIB) -L$(AARCH64_LIB2) -Wl,-rpath-link=$(AARCH64_LIB):$(AARCH64_LIB2)'
# Before anything is fetched for it.
need_aarch64 = $(Q)command -v $(AARCH64_CC) >/dev/null || \
	{ echo '$(AARCH64_CC) is not installed; scripts/dev/deps.sh oci installs it' >&2; exit 1; }

.PHONY: aarch64 aarch64-tests parts
aarch64: AARCH64_GOALS := $(B)/aarch64/install
aarch64-tests: AARCH64_GOALS := parts
aarch64 aarch64-tests:
	$(need_aarch64)
	$(Q)scripts/dev/arm64-sysroot.sh $(AARCH64_ROOT)
	+$(Q)$(AARCH64_MAKE) PLAIN=1 library $(AARCH64_GOALS)
parts: $(addprefix $(B)/,$(AARCH64_PARTS))

# x86-64 only so far.
MODEL_TESTS := $(if $(filter x86_64,$(CPU)),model)

.PHONY: tests programs units
programs: $(PROGRAMS) $(MODULES) $(LATE_THREADS) $(TOOL_MODULES) $(URING_SERVER) $(THREADS_BENCH) $(HELPERS) $(PLACES) $(FUZZ)
units: $(ARCH_TEST) $(AARCH64_TEST) $(UNITS) $(WATCH)
tests: all programs units $(MODEL_TESTS) $(B)/install

.PHONY: check-aarch64
check-aarch64:
	@scripts/dev/deps.sh check
	@$(MAKE) -s all programs aarch64-tests
	@tests/scripts/runtime/aarch64.sh

# These targets install packages first; then a second make finds them.
.PHONY: check-glibc
check-glibc:
	@scripts/dev/deps.sh glibc
	@$(MAKE) -s all $(WATCH)
	@tests/scripts/preload/glibc-tests.sh $(if $(MODES),--modes $(MODES))

.PHONY: check-oci
check-oci:
	@scripts/dev/deps.sh oci
	@$(MAKE) -s all $(WATCH) $(B)/install $(B)/tests/helpers/busy
	@tests/in_time.sh $@ 180 $(patsubst %,tests/scripts/%.sh,kubernetes/kubernetes kubernetes/kubernetes_policy \
		kubernetes/pods_page package/oci package/oci_all package/oci_cdi)

.PHONY: fleet
fleet:
	@scripts/dev/deps.sh fleet
	@$(MAKE) -s all $(NEXT) $(WATCH)
	@tests/in_time.sh $@ 180 tests/scripts/service/fleet.sh

.PHONY: demo check check-all check-static check-unit check-programs check-scripts bench stress soak fuzz
check:
	@scripts/dev/deps.sh check
	@scripts/dev/check-symbols.sh --table
	@$(MAKE) -s tests
	@tests/run.sh

# Like check, with the programs in every mode, and the programs in tests/extra.
check-all:
	@scripts/dev/deps.sh all
	@scripts/dev/check-symbols.sh --table
	@$(MAKE) -s tests aarch64 $(EXTRA) $(NEXT)
	@tests/run.sh --all --modes native,native-late,late,fz,fz1,fz2,fz3,fz8,fz16,epoll,epoll1,epoll2,epoll3,epoll8,epoll16,old,off

check-static: $(LIBRARY) programs
	@tests/run.sh --only static
check-unit: units
	@tests/run.sh --only unit
check-programs: all programs
	@tests/run.sh --only programs
check-scripts: all programs $(MODEL_TESTS)
	@tests/run.sh --only scripts

demo:
	@scripts/dev/deps.sh demo
	@$(MAKE) -s all $(B)/tests/programs/legacy_server
	@scripts/dev/demo.sh

bench:
	@scripts/dev/deps.sh check
	@$(MAKE) -s all programs
	@scripts/bench/programs/run.py $(if $(QUICK),--quick) --json $(B)/bench/programs.json \
		--chart $(B)/bench/programs.svg
ifndef QUICK
	@scripts/bench/echo.sh
	@scripts/bench/threads.sh
endif

stress:
	@scripts/dev/deps.sh check
	@$(MAKE) -s all programs
	@tests/run.sh --stress $(MINUTES) $(if $(MODES),--modes $(MODES))

# In its own make: the library that checks itself has other flags.
soak:
	@scripts/dev/deps.sh check
	@$(MAKE) -s all programs
	@$(MAKE) -s DEBUG=1 FAULTS=1 B=$(B)/checked $(B)/checked/libfiberize.so
	@tests/soak.sh --hours $(HOURS)

fuzz:
	@scripts/dev/deps.sh check
	@$(MAKE) -s all $(FUZZ)
	@tests/scripts/check/check.sh all
	@tests/scripts/check/fuzz.sh $(FILES)
	@tests/scripts/check/fuzz_corpus.sh $(SECONDS)

# Compiles and links with another compiler, into a build directory of its own.
.PHONY: check-clang
check-clang:
	@$(MAKE) -s CC=clang B=$(B)/clang CFLAGS='-O0 -g0' library

# ---- install
bindir := $(DESTDIR)$(PREFIX)/bin
libdir := $(DESTDIR)$(PREFIX)/lib/fiberize
libexecdir := $(DESTDIR)$(PREFIX)/libexec/fiberize
mandir := $(DESTDIR)$(PREFIX)/share/man
completiondir := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
docdir := $(DESTDIR)$(PREFIX)/share/doc/fiberize
exampledir := $(docdir)/examples
# gdb loads what is in the first of these by itself; of the second, it says how to allow it.
gdbdir := $(if $(filter /usr,$(PREFIX)),$(DESTDIR)/usr/share/gdb/auto-load/usr/lib/fiberize,$(libdir))

EXAMPLES := alerts.yml cdi.json dashboard.json fiberize.conf profiles.conf seccomp.json
PAGES := scripts/package/CHANGELOG.md scripts/package/SECURITY.md scripts/service/SERVICES.md scripts/kubernetes/PODS.md

# Characters in paths that the shell or sed would change; and in PREFIX, which gets into LD_PRELOAD, those that the loader
# reads there (it expands $$LIB and $${ORIGIN}; colons and blanks separate names), or systemd (%).
HASH := \#
BLANK := $(HASH) $(HASH)
BLANK := $(subst $(HASH),,$(BLANK))
ODD := $(strip $(findstring ',$(DESTDIR)) $(foreach c,' & \ $$ : % $(HASH),$(findstring $(c),$(PREFIX))) \
	$(if $(findstring $(BLANK),$(PREFIX)),a blank))
refuse_odd = $(if $(ODD),$(error $(DESTDIR)$(PREFIX): $(ODD) cannot be in it))

.PHONY: install uninstall deb deb-arm64 oci oci-all clean
install: all
	$(refuse_odd)
	$(Q)install -d '$(bindir)' '$(libdir)' '$(libexecdir)' '$(mandir)/man1' \
		'$(mandir)/man7' '$(completiondir)' '$(exampledir)' '$(gdbdir)'
	$(Q)install -m 755 $(B)/fiberize '$(bindir)/fiberize'
	$(Q)install -m 644 $(B)/libfiberize.so '$(libdir)/libfiberize.so'
	$(Q)for dir in $(LIB_STUB); do install -d '$(libdir)'/"$$dir" && \
		ln -sf "$$(echo "$$dir" | sed 's#[^/]*#..#g')/libfiberize-preload.so" '$(libdir)'/"$$dir"; done
	$(Q)for dir in $(LIB_STUB32); do install -d '$(libdir)'/"$$dir" && \
		install -m 644 $(B)/lib32/libfiberize-preload.so '$(libdir)'/"$$dir"; done
	$(Q)$(call LOADER_LINKS,'$(libdir)')
	$(Q)install -m 644 $(B)/libfiberize-preload.so '$(libdir)'
	$(Q)install -m 644 $(addprefix $(B)/libexec/,$(BENCH_TEXT) $(filter-out service.sh,$(SERVICE_TEXT))) '$(libexecdir)'
	$(Q)for file in $(KUBERNETES_TEXT); do install -D -m 644 $(B)/libexec/"$$file" '$(libexecdir)'/"$$file"; done
	$(Q)install -m 755 $(addprefix $(B)/libexec/,service.sh kubernetes.sh measure echo_client inspect) '$(libexecdir)'
	$(Q)install -m 644 $(B)/gdb.py '$(gdbdir)/libfiberize.so-gdb.py'
	$(Q)install -m 644 scripts/package/fiberize.1 '$(mandir)/man1/fiberize.1'
	$(Q)install -m 644 scripts/package/libfiberize.7 '$(mandir)/man7/libfiberize.7'
	$(Q)install -m 644 scripts/package/fiberize.bash '$(completiondir)/fiberize'
	$(Q)install -m 644 $(addprefix scripts/package/,$(EXAMPLES)) '$(exampledir)'
	$(Q)install -m 644 $(PAGES) '$(docdir)'
	$(Q)sed -i 's#@LIBDIR@#$(PREFIX)/lib/fiberize#' '$(exampledir)/fiberize.conf' '$(exampledir)/cdi.json'

uninstall:
	$(refuse_odd)
	$(Q)rm -f '$(bindir)/fiberize' '$(libdir)/libfiberize.so' $(patsubst %,'$(libexecdir)/%',$(BENCH_TEXT) $(SERVICE_TEXT) \
		kubernetes.sh $(KUBERNETES_TEXT)) \
		'$(libexecdir)/measure' '$(libexecdir)/echo_client' '$(libexecdir)/inspect' \
		'$(mandir)/man1/fiberize.1' '$(mandir)/man7/libfiberize.7' \
		'$(completiondir)/fiberize' $(patsubst %,'$(exampledir)/%',$(EXAMPLES)) \
		$(patsubst %,'$(docdir)/%',$(notdir $(PAGES))) '$(gdbdir)/libfiberize.so-gdb.py'
	$(Q)for dir in . $(LIB_ALL); do \
		rm -f '$(libdir)'/"$$dir/libfiberize-preload.so" '$(libdir)'/"$$dir/libfiberize.so"; \
		[ "$$dir" = . ] || [ ! -d '$(libdir)'/"$$dir" ] || \
		(cd '$(libdir)' && rmdir -p --ignore-fail-on-non-empty "$$dir"); done
	$(Q)for dir in '$(gdbdir)'  '$(libdir)' '$(libexecdir)/kubernetes/base' '$(libexecdir)/kubernetes/by-hand' \
		'$(libexecdir)/kubernetes' '$(libexecdir)' '$(exampledir)' '$(docdir)'; do \
		[ ! -d "$$dir" ] || rmdir --ignore-fail-on-non-empty "$$dir"; done

# Builds build/fiberize_VERSION_ARCH.deb from the files that "make install" puts below /usr.
deb: all
	$(Q)CC='$(CC)' CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)' scripts/package/deb.sh $(VERSION) $(B) $(DEB_PACKAGES)

# The same for arm64, by the cross compiler: build/aarch64.
deb-arm64:
	$(need_aarch64)
	$(Q)scripts/dev/arm64-sysroot.sh $(AARCH64_ROOT)
	+$(Q)$(AARCH64_MAKE) DEB_PACKAGES=$(abspath $(AARCH64_ROOT))/packages deb

OCI_FILES := $(B)/libfiberize.so $(B)/libfiberize-preload.so $(B)/install
oci: $(OCI_FILES)
	$(Q)scripts/package/oci.sh $(VERSION) $(B) $(B)/oci

# For amd64 and arm64, by the cross compiler.
oci-all: $(OCI_FILES)
	$(need_aarch64)
	$(Q)scripts/dev/arm64-sysroot.sh $(AARCH64_ROOT)
	+$(Q)$(AARCH64_MAKE) $(patsubst $(B)/%,$(B)/aarch64/%,$(OCI_FILES))
	$(Q)scripts/package/oci.sh $(VERSION) $(B) $(B)/aarch64 $(B)/oci

clean:
	$(Q)rm -rf $(B)

-include $(RUNTIME_OBJ:.o=.d) $(PRELOAD_OBJ:.o=.d) $(TSAN_OBJ:.o=.d) \
	$(B)/libexec/echo_client.d $(B)/libexec/measure.d

include tests/model/build.mk
include tests/fuzz/build.mk
