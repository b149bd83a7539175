// SPDX-License-Identifier: MIT
//
// tests/extra/go_cgo.go - Go's runtime makes its threads by pthread_create because of
// cgo, and does everything else by system calls and signals of its own.
package main

/*
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static long count(int n)
{
	for (int i = 0; i < n; i++) {
		pthread_mutex_lock(&lock);
		counter++;
		pthread_mutex_unlock(&lock);
	}
	usleep(500);
	return counter;
}

static void *body(void *arg)
{
	int *pipes = arg;
	char c;

	count(100);
	if (read(pipes[0], &c, 1) != 1)
		abort();
	return NULL;
}

// Threads of C's, which wait for what Go writes.
static pthread_t *start(int n, int *pipes)
{
	pthread_t *t = malloc(sizeof(*t) * (size_t)n);

	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, body, pipes))
			abort();
	return t;
}

static void finish(int n, pthread_t *t)
{
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	free(t);
}
*/
import "C"

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const many = 200

func check(ok bool, what string) {
	if !ok {
		panic(what)
	}
}

func echo() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err == nil, "listen")
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go io.Copy(conn, conn)
		}
	}()
	var wg sync.WaitGroup
	for i := 0; i < many; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			conn, err := net.Dial("tcp", listener.Addr().String())
			check(err == nil, "dial")
			defer conn.Close()
			buf := make([]byte, 64)
			for n := 0; n < 20; n++ {
				conn.Write(buf)
				_, err := io.ReadFull(conn, buf)
				check(err == nil, "read")
			}
		}()
	}
	wg.Wait()
	listener.Close()
}

func calls() {
	var wg sync.WaitGroup
	for i := 0; i < many; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			C.count(100)
		}()
	}
	wg.Wait()
	check(C.count(0) == many*100, "counter")
}

func threadsOfC() {
	const n = 20
	var fds [2]int
	check(syscall.Pipe(fds[:]) == nil, "pipe")
	pipes := (*[2]C.int)(C.malloc(8))
	pipes[0], pipes[1] = C.int(fds[0]), C.int(fds[1])
	t := C.start(n, &pipes[0])
	for i := 0; i < n; i++ {
		time.Sleep(100 * time.Microsecond)
		syscall.Write(fds[1], []byte("x"))
	}
	C.finish(n, t)
	check(C.count(0) == many*100+n*100, "counter of threads")
}

func signals() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	check(<-c == syscall.SIGUSR1, "signal")
}

// Loops without calls are preempted by signals to threads.
func spin() {
	stop := time.Now().Add(20 * time.Millisecond)
	done := make(chan int)
	for i := 0; i < 4; i++ {
		go func() {
			n := 0
			for i := 0; i < 100000000 && n >= 0; i++ {
				n += i & 1
			}
			done <- n
		}()
	}
	for time.Now().Before(stop) {
		runtime.Gosched()
	}
	for i := 0; i < 4; i++ {
		<-done
	}
	runtime.GC()
}

func main() {
	echo()
	calls()
	threadsOfC()
	signals()
	spin()
	fmt.Println("EXIT-SUCCESS")
}
