/* SPDX-License-Identifier: MIT */
/*
 * tests/model/spin/wait.pml - the wait's word (runtime/DESIGN.md, "Wait"): one fiber waits twice, two
 * threads try to wake it, with tickets that may be old by then.  Each label is a transition of the
 * table in `transitions`, which names its line of C.
 */
#define WAITS 2

mtype = { IDLE, ARMED, PARKED, FIRED };

/* fz_fiber.wait: both change in one step. */
mtype state = IDLE;
byte number = 0;

byte ticket = 0;		/* published; 0: none yet */
bool saved = true;		/* the context is complete in memory */
bool running = true;
bool left = false;		/* the switch away has happened, its carrier has not looked yet */
byte ready = 0;			/* in run queues */
byte won[WAITS + 1];		/* wake-ups that ended wait n */
bool finished = false;

active proctype fiber()
{
	do
	:: number == WAITS -> break
	:: number < WAITS ->
wait_arm:	d_step {
			assert(state == IDLE);
			number++;
			state = ARMED;
		}
		ticket = number;
		if
		:: state == FIRED		/* before it left: it does not switch */
		:: else ->
			atomic { saved = false; running = false }
			left = true;
			running			/* a carrier has loaded its context */
		fi;
end_wait:	d_step {
			assert(state == FIRED);
			state = IDLE;
		}
	od;
	finished = true
}

/* Whoever ran the fiber: after the switch it is in the next context. */
active proctype carrier()
{
end:	do
	:: left ->
		atomic { saved = true; left = false }
context_saved:	atomic {
			if
			:: state == ARMED -> state = PARKED
			:: else -> assert(state == FIRED); ready++
			fi
		}
	:: atomic {
		ready > 0 ->
		assert(ready == 1 && saved && !running && !left);
		ready--;
		running = true
	}
	od
}

active [2] proctype waker()
{
	byte mine, n;
	mtype s;

	do
	:: finished -> break
	:: ticket > 0 ->
		mine = ticket;
		do
		:: d_step { s = state; n = number }
			if
			:: n != mine || (s != ARMED && s != PARKED) -> break	/* too late */
			:: else
			fi;
fire:			atomic {
				if
				:: state == s && number == n ->
					state = FIRED;
					won[n]++;
					assert(won[n] == 1);
					if
					:: s == PARKED -> assert(saved && !running); ready++
					:: else
					fi;
					break
				:: else			/* it has changed: look again */
				fi
			}
		od
	od
}

/* No wake-up is lost: what is armed runs again.  And nothing is woken twice. */
ltl goes_on { [] (state == ARMED -> <> (state == IDLE)) }
ltl ends { <> finished }
ltl once { [] (ready <= 1) }
