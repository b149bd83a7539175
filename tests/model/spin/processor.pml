/* SPDX-License-Identifier: MIT */
/*
 * tests/model/spin/processor.pml - the word of one processor (runtime/DESIGN.md, "Processor"): carriers
 * enter and leave the runtime, make calls that block, announced or not, lose the processor and wait for
 * events; a thread without a processor queues fibers and kicks; the monitor takes and hands over.  Each
 * label is a transition of the table in `transitions`, which names its line of C.
 *
 * Each access to the word is one step.  What the monitor reads of a processor at a look is one step, too,
 * and so is a request to the monitor with its poke.  Fibers are all alike, so they are counted.  What a
 * fiber does next is any of what it may do, until `calls` are used up.  Time has no length: the monitor
 * looks at any moment, and takes the processor from any fiber in user code.
 *
 * A process may stay for ever only at a label that begins with "end"; when no process can go on, checker()
 * looks whether each fiber has ended once.  Labels in capitals are no transitions.
 *
 * The eventfd is that of epoll.  Not here: rings, where a carrier that has lost the processor may sleep until
 * the next completion; a second processor; the queue of a processor, yields, timers, closed processors; the
 * number of idle carriers, which the carrier spawner keeps above 0.
 */
#define CARRIERS 3		/* at most */
#define NONE 0

/* enum fz_owner_state, and owner_word(): the carrier is in the upper bits.  The first processor is never FREE. */
#define RUNTIME 1
#define USER 2
#define ANNOUNCED 3
#define WAITING 4
#define W(carrier, state) ((carrier) * 8 + (state))
#define STATE(word) ((word) & 7)
#define CARRIER(word) ((word) >> 3)

/* Faults, each of which must be found (the file `runs`): PLANTED=NUMBER pan. */
#define FAULT_waiting_after_look 1
#define FAULT_no_second_look 2
#define FAULT_kick_skipped 3
#define FAULT_look_before_push 4
#define FAULT_kick_not_forgotten 5
#define FAULT_back_by_store 6
#define FAULT_entered_by_store 7
#define FAULT_loser_not_kicked 8
#define FAULT_loser_uncounted 9
#define FAULT_loser_stays_owner 10
#define FAULT_woken_before_given 11
#define FAULT_idle_reset_late 12
#define FAULT_taken_by_store 13
#define FAULT_failure_forgotten 14
#define FAULT_asleep_after_look 15
#define FAULT_announced_at_once 16
#define FAULT_not_requeued 17
#define FAULT_requeued_twice 18
#define PLANTED(fault) (planted == FAULT_##fault)

/* struct fz_processor */
byte owner;
bool kicked;
bool event;			/* the eventfd's count is not 0: what waits for it returns, as from epoll_wait */
short losers;

byte queue;			/* fibers in fz_sched.global */

/* struct fz_carrier; 0 is no carrier. */
bool has[CARRIERS + 1];		/* its `processor` is not NULL */
bool wakeup[CARRIERS + 1];
byte in_call[CARRIERS + 1];	/* 0: no; 1: yes; 2: the monitor has seen it, at its last look */
bool idle[CARRIERS + 1];	/* on the idle list */

/* The monitor */
bool want_carrier, asleep, poked;

/* Not in C: what is to be done, and what the properties are about. */
byte fibers;
byte ended;
byte calls;			/* of all fibers together */
bool may_wait;			/* one more may be made that returns when all other fibers have ended */
bool may_wire;			/* one fiber may stop being one */
byte inside;			/* threads that believe they have the processor in RUNTIME */
bool waits[CARRIERS + 1];	/* in the kernel, for the processor's events */

/* What a fiber does next. */
#define ENDS 0
#define COMPUTES 1
#define CALLS_BRIEFLY 2
#define CALLS_ANNOUNCED 3
#define WIRES 4
#define IDLE 5			/* there is no fiber */

/* Part of the step by which a carrier gets a fiber, or a fiber the processor. */
inline choose()
{
	if
	:: ended++; next = ENDS
	:: calls > 0 -> calls--; next = COMPUTES
	:: calls > 0 -> calls--; next = CALLS_BRIEFLY
	:: calls > 0 -> calls--; next = CALLS_ANNOUNCED
	:: may_wait -> may_wait = false; lasts = true; next = CALLS_BRIEFLY
	:: may_wait -> may_wait = false; lasts = true; next = CALLS_ANNOUNCED
	:: may_wire -> may_wire = false; next = WIRES
	fi
}

/* The compare-and-swap by which who_ gets the processor. */
inline swap(from_, who_)
{
	if
	:: owner == from_ ->
		owner = W(who_, RUNTIME);
		inside++;
		assert(inside == 1);
		done = true
	:: else -> done = false
	fi
}

inline swap_and_choose(from_)
{
	swap(from_, me);
	if
	:: done -> has[me] = true; choose()
	:: else
	fi
}

/* The faults that store instead. */
inline store_and_choose()
{
	owner = W(me, RUNTIME);
	inside++;
	assert(inside == 1);
	choose()
}

/* The store by which the owner, who_, stops being the owner. */
inline pass(who_, to_)
{
	assert(owner == W(who_, RUNTIME));
	owner = to_;
	inside--
}

/* fz_monitor_want_carrier() */
inline want()
{
	done = false;
want_set: d_step {
		if
		:: !want_carrier -> want_carrier = true; poked = true
		:: else
		fi
	}
}

/* fz_monitor_note_activity() */
inline note_activity()
{
	done = false;
poke_if_asleep: d_step {
		if
		:: asleep -> poked = true
		:: else
		fi
	}
}

/* fz_sched_kick() */
inline kick()
{
	done = false;
kick_look: seen = owner;
	if
	:: STATE(seen) == WAITING ->
kick_mark:	d_step { done = kicked; kicked = true }
		if
		:: !done ->
kick_write:		event = true
		:: else
		fi
	:: STATE(seen) == ANNOUNCED -> want()
	:: else
	fi
}

/* fz_carrier_hand_off(), by who_, who has the processor in RUNTIME.  heir: the carrier that has it then. */
inline hand_off(who_)
{
	done = false;
take_idle: atomic {
		if
		:: idle[1] -> idle[1] = false; heir = 1
		:: idle[2] -> idle[2] = false; heir = 2
		:: idle[3] -> idle[3] = false; heir = 3
		:: else -> heir = NONE
		fi
	}
	if
	:: heir != NONE ->
		if
		:: PLANTED(woken_before_given) -> wakeup[heir] = true
		:: else
		fi;
give:		d_step {
			assert(!has[heir] && owner == W(who_, RUNTIME) && inside == 1);
			has[heir] = true;
			owner = W(heir, RUNTIME)
		}
wake:		wakeup[heir] = true
	:: else
	fi
}

proctype carrier(byte me, planted)
{
	byte seen, heir, next;
	bool done, wanted, lasts;

	/* ---- fz_sched_run_carrier() */
AGAIN:	atomic {
		seen = 0; heir = NONE; next = IDLE; done = false; wanted = false; lasts = false;
		if
		:: has[me] -> goto PICKS
		:: else
		fi
	}
	if
	:: PLANTED(idle_reset_late) -> idle[me] = true; wakeup[me] = false
	:: else ->
push_idle:	d_step { assert(!idle[me]); wakeup[me] = false; idle[me] = true }
	fi;
note_idle:	d_step {
		if
		:: want_carrier -> poked = true
		:: else
		fi
	}
end_await: wakeup[me];
PICKS:	next = IDLE;
pick:	atomic {
		assert(has[me] && owner == W(me, RUNTIME));
		if
		:: queue > 0 -> queue--; choose(); goto RUNS
		:: else
		fi
	}
	/* ---- go_idle() */
	if
	:: PLANTED(kick_not_forgotten)
	:: else ->
forget_kick:	d_step { assert(owner == W(me, RUNTIME)); kicked = false }
	fi;
	if
	:: PLANTED(waiting_after_look)
	:: else ->
publish_waiting: d_step { pass(me, W(me, WAITING)) }
	fi;
look_again: d_step {
		wanted = queue == 0 || PLANTED(no_second_look);	/* to wait */
		waits[me] = wanted
	}
	if
	:: PLANTED(waiting_after_look) -> d_step { pass(me, W(me, WAITING)) }
	:: else
	fi;
	if
	:: wanted ->
end_backend_wait: d_step { event; waits[me] = false }
	:: else
	fi;
stop_waiting: d_step { swap(W(me, WAITING), me) }
	if
	:: !done && !PLANTED(loser_stays_owner) ->
loser_leaves:	d_step { losers--; has[me] = false }
		goto AGAIN
	:: else
	fi;
	if
	:: wanted ->
losers_look:	done = losers > 0;		/* if so, the event stays unread, to wake them, too */
		if
		:: !done ->
read_event:		d_step { assert(owner == W(me, RUNTIME)); event = false }
		:: else
		fi;
		if
		:: PLANTED(kick_not_forgotten)
		:: else ->
note_kick:		d_step { assert(owner == W(me, RUNTIME)); kicked = false }
		fi
	:: else
	fi;
	note_activity();
	goto AGAIN;

	/* ---- a fiber runs, in the runtime: fz_leave_runtime(), fz_announce(), fz_sched_give_up() */
RUNS:	if
	:: next == ENDS -> goto AGAIN
	:: next == COMPUTES || next == CALLS_BRIEFLY ->
leave:		d_step { pass(me, W(me, USER)); in_call[me] = (next == CALLS_BRIEFLY -> 1 : 0) }
		if
		:: lasts -> ended == fibers - 1
		:: else
		fi;
		if
		:: next == CALLS_BRIEFLY ->
call_ends:		in_call[me] = 0
		:: else
		fi;
		goto ENTERS
	:: else
	fi;
announce_look: atomic {
		if
		:: queue > 0 || next == WIRES -> wanted = true
		:: queue == 0 && next != WIRES
		:: next != WIRES -> wanted = true	/* requests are in flight */
		fi
	}
	if
	:: wanted -> hand_off(me)
	:: else
	fi;
	if
	:: heir == NONE && next == WIRES ->
let_go:		d_step { pass(me, W(NONE, ANNOUNCED)) }
		want()
	:: heir == NONE && next != WIRES ->
announce:	d_step { pass(me, W(me, ANNOUNCED)) }
		if
		:: wanted -> want()
		:: else
		fi
	:: else
	fi;
	if
	:: next == WIRES -> ended++; goto GONE
	:: next != WIRES && lasts -> ended == fibers - 1
	:: next != WIRES && !lasts
	fi;

	/* ---- fz_enter_runtime() */
ENTERS:	atomic { heir = NONE; next = IDLE; done = false; wanted = false; lasts = false }
	if
	:: PLANTED(entered_by_store) -> atomic { store_and_choose() } goto RUNS
	:: else
	fi;
enter:	atomic {
		swap_and_choose(W(me, USER));
		if
		:: done -> goto RUNS
		:: else
		fi
	}
	if
	:: PLANTED(back_by_store) && owner == W(me, ANNOUNCED) -> atomic { store_and_choose() } goto RUNS
	:: PLANTED(back_by_store) && owner != W(me, ANNOUNCED)
	:: else ->
back_from_announced: atomic { swap_and_choose(W(me, ANNOUNCED)) }
	fi;
	if
	:: done -> note_activity(); goto RUNS
	:: else
	fi;
unused_look: seen = owner;				/* take_unused() */
	if
	:: STATE(seen) == WAITING || STATE(seen) == ANNOUNCED ->
unused_take:	atomic { swap_and_choose(seen) }
		if
		:: done ->
			if
			:: STATE(seen) == WAITING && !PLANTED(loser_not_kicked) ->
				if
				:: PLANTED(loser_uncounted)
				:: else ->
loser_counted:				losers++
				fi;
loser_kicked:			event = true
			:: else
			fi;
			note_activity();
			seen = 0;
			goto RUNS
		:: else
		fi
	:: else
	fi;
displace_look: seen = owner;				/* displace() */
	if
	:: STATE(seen) == USER ->			/* and its fiber is CPU-bound */
displace_take:	atomic { swap_and_choose(seen) }
		if
		:: done -> seen = 0; goto RUNS
		:: else
		fi
	:: true
	fi;
	if						/* fz_sched_queue_up() */
	:: PLANTED(not_requeued) -> has[me] = false
	:: PLANTED(requeued_twice) -> d_step { has[me] = false; queue = queue + 2 }
	:: else ->
requeue:	d_step { has[me] = false; queue++ }
	fi;
	kick();
	goto AGAIN;
GONE:	skip
}

/* A thread without a processor: fz_sched_ready(). */
proctype waker(byte n, planted)
{
	byte seen;
	bool done;

	do
	:: n == 0 -> break
	:: else ->
		if
		:: PLANTED(look_before_push) -> kick()
		:: else
		fi;
push:		queue++;
		if
		:: PLANTED(kick_skipped) || PLANTED(look_before_push)
		:: else -> kick()
		fi;
		n--;
		seen = 0
	od
}

/* fz_processor_take() of the processor that was `seen`.  failed: no carrier is idle, at two looks. */
inline take()
{
	do
	:: true ->
		heir = NONE;
		if
		:: PLANTED(taken_by_store) -> atomic { owner = W(NONE, RUNTIME); inside++; assert(inside == 1); done = true }
		:: else ->
take_away:		d_step { swap(seen, NONE) }
		fi;
		if
		:: !done -> break
		:: else
		fi;
		hand_off(NONE);
		if
		:: heir != NONE -> break
		:: else
		fi;
take_failed:	d_step { pass(NONE, W(CARRIER(seen), ANNOUNCED)); seen = W(CARRIER(seen), ANNOUNCED) }
		in_use = !PLANTED(failure_forgotten);
lacks:		want_carrier = !PLANTED(failure_forgotten);
look_idle:	d_step { found = idle[1] || idle[2] || idle[3] }
		if
		:: !found -> break
		:: else
		fi;
poke_itself:	poked = true
	od
}

/*
 * A request for a carrier makes it look.  In C a request makes it take an ANNOUNCED processor that has work,
 * as the look does.
 */
proctype monitor(byte planted)
{
	byte seen, heir;
	bool in_use, work, called, done, last, found;

	do
	:: true ->
wish_taken:	d_step { asleep = false; poked = false; want_carrier = false; last = false }
look_at:	atomic {
			seen = owner;
			work = queue > 0;
			/* The carrier is in a call: announced, or brief, and the last look met it, too. */
			called = STATE(seen) == ANNOUNCED ||
				 (STATE(seen) == USER && in_call[CARRIER(seen)] > (PLANTED(announced_at_once) -> 0 : 1));
			in_use = STATE(seen) == RUNTIME || (STATE(seen) == USER && !called) || (called && work);
			if
			:: STATE(seen) == USER && in_call[CARRIER(seen)] == 1 -> in_call[CARRIER(seen)] = 2
			:: else
			fi
		}
		if
		:: called && work -> take()
		:: called && !work && STATE(seen) == USER ->
look_announces:		d_step {
				if
				:: owner == seen -> owner = W(CARRIER(seen), ANNOUNCED)
				:: else
				fi
			}
		:: !called && STATE(seen) == USER -> take()	/* it has run for long */
		:: !called || (!work && STATE(seen) != USER)
		fi;
		atomic { seen = 0; heir = NONE; work = false; called = false; done = false; found = false }
		if
		:: in_use					/* until the next tick */
		:: !in_use && last ->
end_sleep_for:		poked
		:: !in_use && !last ->
falls_asleep:		d_step { asleep = true; last = true }
			if
			:: PLANTED(asleep_after_look) -> poked
			:: else -> goto look_at
			fi
		fi
	od
}

/* All processes stay where they are. */
proctype checker()
{
	byte c = 1;

end:	timeout;
	assert(ended == fibers && queue == 0);
	do
	:: c > CARRIERS -> break
	:: else -> assert(!waits[c] || owner == W(c, WAITING)); c++
	od
}

c_decl {
	static int given(const char *name)
	{
		return getenv(name) ? atoi(getenv(name)) : 0;
	}
}

init {
	byte c, carriers, pushed, planted;

	atomic {
		c_code {
			Pinit->planted = given("PLANTED");
			Pinit->carriers = given("CARRIERS");
			Pinit->pushed = given("PUSHED");
			now.calls = given("CALLS");
			now.queue = given("QUEUED");
			now.may_wait = given("WAITING");
			now.may_wire = given("WIRED");
		}
		fibers = queue + pushed;
		owner = W(1, RUNTIME);
		inside = 1;
		has[1] = true;
		do
		:: c == carriers -> break
		:: else -> c++; run carrier(c, planted)
		od;
		run monitor(planted);
		run checker();
		run waker(pushed, planted);
		c = 0; carriers = 0; pushed = 0
	}
}

/* At most one thread acts as the owner; besides, no assertion fails, and all that stay may stay. */
ltl one_owner { [] (inside <= 1) }

/* No kick is lost: each fiber runs, and ends.  Nor is a processor handed to a carrier that sleeps on. */
ltl ends { <> (fibers > 0 && ended == fibers && queue == 0) }

/* A carrier that lost the processor in its wait is woken. */
#define DEAF(c) (waits[c] && owner != W(c, WAITING))
ltl losers_leave { [] (DEAF(1) || DEAF(2) || DEAF(3) -> <> !(DEAF(1) || DEAF(2) || DEAF(3))) }
