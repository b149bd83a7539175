/* SPDX-License-Identifier: MIT */
/*
 * tests/model/spin/wait.pml - the wait's word (runtime/DESIGN.md, "Wait"): one fiber waits twice, two
 * threads try to wake it, with tickets that may be old by then.  Each label is a transition of the
 * table in `transitions`, which names its line of C; "end" is none.
 */
#define WAITS 2

/* Faults, each of which must be found (the file `runs`): PLANTED=NUMBER pan. */
#define FAULT_any_number 1
#define FAULT_parked_unsaved 2
#define FAULT_parked_by_store 3
#define FAULT_not_requeued 4
#define FAULT_fired_by_store 5
#define FAULT_parked_not_queued 6
#define PLANTED(fault) (planted == FAULT_##fault)

mtype = { IDLE, ARMED, PARKED, FIRED };

/* fz_fiber.wait: both change in one step. */
mtype state = IDLE;
byte number = 0;

byte ticket = 0;		/* published; 0: none yet */

bool saved = true;		/* the context is complete in memory */
bool running = true;
bool left = false;		/* the switch away has happened, its carrier has not looked yet */
byte ready = 0;			/* in run queues */

/* Not in C */
byte won[WAITS + 1];		/* wake-ups that ended wait n */
bool finished = false;

proctype fiber(byte planted)
{
	bool fired;

	do
	:: number == WAITS -> break
	:: number < WAITS ->
wait_arm: d_step {
			assert(state == IDLE);
			number++;
			state = ARMED;
		}
publish: ticket = number;
look:	fired = state == FIRED;			/* before it left: it does not switch */
		if
		:: fired
		:: !fired && PLANTED(parked_unsaved) -> d_step { state = PARKED; saved = false; running = false; left = true }
			running
		:: else ->
switch_away:	d_step { saved = false; running = false; left = true }
			running			/* a carrier has loaded its context */
		fi;
end_wait: d_step {
			assert(state == FIRED);
			state = IDLE;
		}
	od;
	finished = true
}

/* Whoever ran the fiber: after the switch it is in the next context. */
proctype carrier(byte planted)
{
	mtype s;

end:	do
	:: left ->
saves:		d_step { saved = true; left = false }
look_saved:	s = state;
		if
		:: PLANTED(parked_by_store) && s == ARMED -> state = PARKED
		:: else ->
context_saved:		d_step {
				if
				:: s == ARMED && state == ARMED -> state = PARKED
				:: else -> s = FIRED
				fi
			}
			if
			:: s == FIRED && !PLANTED(not_requeued) ->
				assert(state == FIRED);
requeue:			ready++
			:: else
			fi
		fi
	:: ready > 0 ->
pick_up:	d_step {
			assert(ready == 1 && saved && !running && !left);
			ready--;
			running = true
		}
	od
}

proctype waker(byte planted)
{
	byte mine, n;
	mtype s;
	bool done;

	do
	:: finished -> break
	:: ticket > 0 ->
		mine = ticket;
		do
		:: true ->
wake_look:		d_step { s = state; n = number }
			if
			:: n != mine && !PLANTED(any_number) -> break		/* too late */
			:: s != ARMED && s != PARKED -> break
			:: (n == mine || PLANTED(any_number)) && (s == ARMED || s == PARKED)
			fi;
fire:			d_step {
				done = (state == s && number == n) || PLANTED(fired_by_store);
				if
				:: done ->
					state = FIRED;
					won[n]++;
					assert(won[n] == 1 && n == mine)
				:: else			/* it has changed: look again */
				fi
			}
			if
			:: done && s == PARKED && !PLANTED(parked_not_queued) ->
				assert(saved && !running);
fire_queues:			ready++;
				break
			:: done && (s != PARKED || PLANTED(parked_not_queued)) -> break
			:: else
			fi
		od
	od
}

c_decl {
	static int given(const char *name)
	{
		return getenv(name) ? atoi(getenv(name)) : 0;
	}
}

init {
	byte planted;

	atomic {
		c_code { Pinit->planted = given("PLANTED"); }
		run fiber(planted);
		run carrier(planted);
		run waker(planted);
		run waker(planted)
	}
}

/* No wake-up is lost: what is armed runs again.  And nothing is woken twice. */
ltl goes_on { [] (state == ARMED -> <> (state == IDLE)) }
ltl ends { <> finished }
ltl once { [] (ready <= 1) }
