/* SPDX-License-Identifier: MIT */
/*
 * tests/model/spin/processor.pml - the processor's word (runtime/DESIGN.md, "Processor"): one processor,
 * two carriers, a thread without a processor that makes fibers runnable, the monitor.  What a fiber
 * does: it returns to the runtime, or makes an announced call first.  Each label is a transition of
 * the table in `transitions`, which names its line of C.
 */
#define NOBODY 2
#define PUSHES 2

mtype = { RUNTIME, USER, ANNOUNCED, WAITING };

/* fz_processor.owner: both change in one step. */
mtype state = USER;
byte carrier = 0;

byte queued = 0;		/* fibers in run queues */
bool kicked = false;		/* fz_processor.kicked */
bool event = false;		/* the eventfd has a count */
byte losers = 0;		/* fz_epoll.losers */
bool want = false;		/* monitor.want_carrier */
bool idle[2];			/* on the idle list */
bool go[2];			/* fz_carrier.wakeup */
byte inside = 0;		/* carriers that are in the runtime, with the processor */
byte pushed = 0;

inline came_in() { inside++; assert(inside == 1) }
inline goes_out() { assert(state == RUNTIME); inside-- }

/* fz_sched_kick() */
inline kick(seen)
{
	seen = state;
	if
	:: seen == WAITING ->
kick_waiting:	if
		:: atomic { !kicked -> kicked = true }
			event = true
		:: kicked
		fi
	:: seen == ANNOUNCED -> want = true
	:: else
	fi
}

active proctype pusher()
{
	mtype seen;

	do
	:: pushed == PUSHES -> break
	:: pushed < PUSHES ->
push:		d_step { queued++; pushed++ }
		kick(seen)
	od
}

proctype carry(byte me)
{
	mtype seen;

	if
	:: me == 0 -> goto user
	:: else -> goto asleep
	fi;

runtime: /* It has the processor, in RUNTIME. */
	if
	:: atomic { queued > 0 -> queued-- } goto leave
	:: queued == 0
	fi;
	kicked = false;
go_idle:
	atomic { goes_out(); state = WAITING }
	if
	:: queued > 0			/* look again */
	:: queued == 0 ->
end_waits:	event			/* fz_backend_wait() */
	fi;
back_from_wait:
	atomic {
		if
		:: state == WAITING && carrier == me -> state = RUNTIME; came_in()
		:: else -> losers--; goto lost
		fi
	}
	/* While losers sleep here, the eventfd stays unread. */
	if
	:: losers == 0 -> event = false
	:: losers > 0
	fi;
	kicked = false;
	goto runtime;

leave:	atomic { goes_out(); state = USER }
user:	if
	:: true
announce:	atomic { if :: state == USER && carrier == me -> state = ANNOUNCED :: else fi }
		if
		:: queued > 0 -> want = true
		:: queued == 0
		fi
	:: true
	fi;
enter:	atomic {
		if
		:: (state == USER || state == ANNOUNCED) && carrier == me ->
			state = RUNTIME; came_in(); goto runtime
		:: else
		fi
	}
take_unused:
	atomic {
		if
		:: state == WAITING ->
			losers++; carrier = me; state = RUNTIME; came_in();
			goto taken
		:: state == ANNOUNCED -> carrier = me; state = RUNTIME; came_in(); goto runtime
		:: else
		fi
	}
	/* Its fiber goes into the global queue. */
	queued++;
	kick(seen);
	goto lost;
taken:	event = true;			/* the kick for the loser */
	goto runtime;

lost:
push_idle:
	idle[me] = true;
asleep:
end_asleep:
	go[me] -> go[me] = false;
	came_in();
	goto runtime
}

active proctype monitor()
{
	byte to;
	byte from;

end:	do
	:: want || (state == USER && queued > 0) ->
		want = false;
take:		atomic {
			if
			:: (state == ANNOUNCED || (state == USER && queued > 0)) ->
				from = carrier; state = RUNTIME; carrier = NOBODY
			:: else -> goto end
			fi
		}
		if
		:: atomic { idle[0] -> idle[0] = false } to = 0
		:: atomic { idle[1] -> idle[1] = false } to = 1
		:: !idle[0] && !idle[1] -> to = NOBODY
		fi;
		if
		:: to != NOBODY ->
give:			atomic { carrier = to; state = RUNTIME }
			go[to] = true
		:: else ->
			atomic { carrier = from; state = ANNOUNCED }
			want = true
		fi
	od
}

init {
	atomic { idle[1] = true; run carry(0); run carry(1) }
}

/* No kick is lost: in the end all fibers have run. */
ltl all_run { <> (pushed == PUSHES) && [] (queued > 0 -> <> (queued == 0)) }
/* RUNTIME is stable: one carrier at a time. */
ltl alone { [] (inside <= 1) }
