// SPDX-License-Identifier: MIT
//
// tests/extra/rust_std.rs - what Rust's standard library synchronises with, from
// many threads.  Built by "make check-all" only: rustc is a big package.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: usize = 64;
const ROUNDS: usize = 200;

static ENDED: AtomicUsize = AtomicUsize::new(0);

struct Local(Vec<usize>);

impl Drop for Local {
    fn drop(&mut self) {
        ENDED.fetch_add(self.0.len(), Ordering::SeqCst);
    }
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::new(Local(Vec::new()));
}

fn spawn_join_and_locals() {
    for _ in 0..2 {
        ENDED.store(0, Ordering::SeqCst);
        let handles: Vec<_> = (0..THREADS)
            .map(|i| {
                thread::Builder::new()
                    .name(format!("worker {}", i))
                    .spawn(move || {
                        LOCAL.with(|l| {
                            assert!(l.borrow().0.is_empty());
                            l.borrow_mut().0.extend(0..i);
                        });
                        thread::yield_now();
                        assert_eq!(thread::current().name().unwrap(), format!("worker {}", i));
                        i * 2
                    })
                    .unwrap()
            })
            .collect();
        for (i, h) in handles.into_iter().enumerate() {
            assert_eq!(h.join().unwrap(), i * 2);
        }
        assert_eq!(ENDED.load(Ordering::SeqCst), THREADS * (THREADS - 1) / 2);
    }
}

fn panics() {
    // What a thread panics with is its joiner's, and a lock it held is poisoned.
    std::panic::set_hook(Box::new(|_| {}));
    let lock = Arc::new(Mutex::new(0));
    for i in 0..THREADS {
        let mine = Arc::clone(&lock);
        let err = thread::spawn(move || {
            let _held = match mine.lock() {
                Ok(g) => g,
                Err(e) => e.into_inner(),
            };
            if i % 2 == 0 {
                panic!("thread {}", i);
            }
        })
        .join();
        match err {
            Ok(()) => assert_eq!(i % 2, 1),
            Err(e) => assert_eq!(*e.downcast::<String>().unwrap(), format!("thread {}", i)),
        }
    }
    assert!(lock.is_poisoned());
    let _ = std::panic::take_hook();
}

fn scopes() {
    let mut numbers: Vec<usize> = (0..THREADS).collect();
    thread::scope(|s| {
        for n in numbers.iter_mut() {
            s.spawn(move || {
                thread::sleep(Duration::from_micros(100));
                *n += 1;
            });
        }
    });
    assert_eq!(numbers.iter().sum::<usize>(), THREADS * (THREADS + 1) / 2);
}

fn channels() {
    let (tx, rx) = mpsc::channel();
    let (bounded_tx, bounded_rx) = mpsc::sync_channel(3);
    let relay = thread::spawn(move || {
        for n in rx {
            bounded_tx.send(n).unwrap();
        }
    });
    for i in 0..THREADS {
        let tx = tx.clone();
        thread::spawn(move || {
            for n in 0..ROUNDS {
                tx.send(i * ROUNDS + n).unwrap();
            }
        });
    }
    drop(tx);
    let all: usize = bounded_rx.iter().sum();
    let n = THREADS * ROUNDS;
    assert_eq!(all, n * (n - 1) / 2);
    relay.join().unwrap();

    let (tx, rx) = mpsc::channel::<()>();
    let begin = Instant::now();
    assert_eq!(
        rx.recv_timeout(Duration::from_millis(3)),
        Err(mpsc::RecvTimeoutError::Timeout)
    );
    assert!(begin.elapsed() >= Duration::from_millis(3));
    drop(tx);
    assert!(rx.recv().is_err());
}

fn locks() {
    let sum = Mutex::new(0usize);
    let shared = RwLock::new(0usize);
    let once = Once::new();
    let runs = AtomicUsize::new(0);
    let barrier = Barrier::new(THREADS);
    let leaders = AtomicUsize::new(0);
    thread::scope(|s| {
        for i in 0..THREADS {
            let (sum, shared, once, runs) = (&sum, &shared, &once, &runs);
            let (barrier, leaders) = (&barrier, &leaders);
            s.spawn(move || {
                once.call_once(|| {
                    thread::sleep(Duration::from_millis(1));
                    runs.fetch_add(1, Ordering::SeqCst);
                });
                assert_eq!(runs.load(Ordering::SeqCst), 1);
                for n in 0..ROUNDS {
                    *sum.lock().unwrap() += 1;
                    if (n + i) % 10 == 0 {
                        *shared.write().unwrap() += 1;
                    } else {
                        assert!(*shared.read().unwrap() <= THREADS * ROUNDS);
                    }
                    if n % 50 == 0 && barrier.wait().is_leader() {
                        leaders.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(*sum.lock().unwrap(), THREADS * ROUNDS);
    assert_eq!(*shared.read().unwrap(), THREADS * ROUNDS / 10);
    assert_eq!(leaders.load(Ordering::SeqCst), ROUNDS / 50);
}

fn conditions() {
    let turn = Mutex::new(0usize);
    let cond = Condvar::new();
    thread::scope(|s| {
        for i in 0..8 {
            let (turn, cond) = (&turn, &cond);
            s.spawn(move || {
                for _ in 0..ROUNDS {
                    let held = turn.lock().unwrap();
                    let mut held = cond.wait_while(held, |t| *t % 8 != i).unwrap();
                    *held += 1;
                    cond.notify_all();
                }
            });
        }
    });
    let held = turn.lock().unwrap();
    assert_eq!(*held, 8 * ROUNDS);
    let begin = Instant::now();
    let (_held, result) = cond.wait_timeout(held, Duration::from_millis(3)).unwrap();
    assert!(result.timed_out() || begin.elapsed() < Duration::from_millis(3));
}

fn parking() {
    let done = AtomicUsize::new(0);
    let main = thread::current();
    thread::scope(|s| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (done, main) = (&done, main.clone());
                s.spawn(move || {
                    for _ in 0..20 {
                        thread::park();
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                    main.unpark();
                })
            })
            .collect();
        while done.load(Ordering::SeqCst) < THREADS {
            for t in &threads {
                t.thread().unpark();
            }
            thread::park_timeout(Duration::from_micros(200));
        }
    });
    // A token that is there already is taken at once.
    thread::current().unpark();
    thread::park();
    let begin = Instant::now();
    thread::park_timeout(Duration::from_millis(3));
    thread::park_timeout(Duration::from_millis(3));
    assert!(begin.elapsed() >= Duration::from_millis(3));
}

fn sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::scope(|s| {
        s.spawn(move || {
            for _ in 0..THREADS {
                let (mut stream, _) = listener.accept().unwrap();
                thread::spawn(move || {
                    let mut buf = [0; 16];
                    loop {
                        let n = stream.read(&mut buf).unwrap();
                        if n == 0 {
                            break;
                        }
                        stream.write_all(&buf[..n]).unwrap();
                    }
                });
            }
        });
        for _ in 0..THREADS {
            s.spawn(move || {
                let mut stream = TcpStream::connect(addr).unwrap();
                let mut buf = [0; 16];
                for n in 0..20u8 {
                    stream.write_all(&[n; 16]).unwrap();
                    stream.read_exact(&mut buf).unwrap();
                    assert_eq!(buf, [n; 16]);
                }
                stream.set_read_timeout(Some(Duration::from_millis(3))).unwrap();
                assert!(stream.read(&mut buf).is_err());
            });
        }
    });
}

fn main() {
    spawn_join_and_locals();
    panics();
    scopes();
    channels();
    locks();
    conditions();
    parking();
    sockets();
    println!("EXIT-SUCCESS");
}
