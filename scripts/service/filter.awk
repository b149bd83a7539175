# SPDX-License-Identifier: MIT
#
# scripts/service/filter.awk - reads what "systemd-analyze syscall-filter" prints, the groups of system calls, and prints
# what the SystemCallFilter= of a unit makes of the calls of the library that a program need not make without it:
#
#	missing CALL		it is not among those that are allowed
#	denied CALL WORD	WORD of the filter denies it: it fails with an error
#	kills CALL WORD		the same, but it ends the process
#
# Variables: kind is "allow" or "deny", words are the words of the filter, as unit.awk prints them, with a "!" before those
# that take back, and number is SystemCallErrorNumber=.

# CALL/OTHER: it makes CALL where the program makes OTHER, so that it counts only if OTHER is allowed.  Not here: what it
# calls only with an option.
BEGIN {
	count = split("io_uring_setup io_uring_enter io_uring_register epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 " \
		"eventfd2 ppoll openat read write close lseek readv writev pread64 preadv2 pwritev2 fcntl dup3 statx faccessat " \
		"readlinkat vmsplice madvise getcpu prctl rt_sigaction rt_sigpending rt_sigprocmask rt_sigtimedwait " \
		"rt_sigqueueinfo rt_tgsigqueueinfo kill tgkill sigaltstack sched_getparam sched_getscheduler " \
		"sched_getattr/sched_setscheduler accept4/accept getsockopt/socket ioctl/socket recvfrom/socket " \
		"recvmsg/socket sendto/socket sendmsg/socket pidfd_open/wait4 waitid/wait4 getitimer/setitimer " \
		"timer_gettime/timer_create", calls, " ")
}

/^@/ {
	group = $1
	next
}
/^[ \t]+[a-z@]/ { groups_of[$1] = groups_of[$1] " " group }

# Returns the place of the last word that is the name, or a group that the name is in; 0 if there is none.
function last_word(name,	i, n, groups, best, one)
{
	best = place[name] + 0
	n = split(groups_of[name], groups, " ")
	for (i = 1; i <= n; i++) {
		one = last_word(groups[i])
		if (one > best)
			best = one
	}
	return best
}

# What becomes of a call: "allowed", "missing", "denied" or "kills".  Sets at, the place of the word that decides.
function verdict(call)
{
	at = last_word(call)
	if (!at)
		return kind == "allow" ? "missing" : "allowed"
	if (taken[at] != (kind == "allow"))
		return "allowed"
	return error[at] == "" || error[at] == "kill" ? "kills" : "denied"
}

END {
	# systemd allows @default in each filter that says what is allowed.
	word_count = split((kind == "allow" ? "@default " : "") words, word, " ")
	for (i = 1; i <= word_count; i++) {
		taken[i] = sub(/^!/, "", word[i])
		# systemd passes over a word without ~ that has an error.  One with ~ that takes back loses its error.
		if (word[i] ~ /:/ && taken[i] != (kind == "allow"))
			continue
		error[i] = word[i] ~ /:/ && !taken[i] ? word[i] : number
		sub(/.*:/, "", error[i])
		sub(/:.*/, "", word[i])
		place[word[i]] = i
	}
	for (i = 1; i <= count; i++) {
		split(calls[i], call, "/")
		if (call[2] != "" && verdict(call[2]) != "allowed")
			continue
		what = verdict(call[1])
		if (what != "allowed")
			print what, call[1] (at ? " " word[at] : "")
	}
}
