#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/real/java.sh - Java: a server with a thread per connection, whose stacks
# overflow now and then, and HttpClient; garbage collection; a dump of all threads by
# SIGQUIT; jstack; the shutdown hook on SIGTERM.

# shellcheck source=tests/real/common.inc
. "$(dirname "$0")/common.inc"
need java javac jstack

cat >"$work/Server.java" <<'END'
import java.io.*;
import java.net.*;
import java.util.concurrent.atomic.AtomicInteger;

public class Server {
    static final AtomicInteger served = new AtomicInteger(), overflows = new AtomicInteger();
    static volatile Object garbage;

    public static void main(String[] args) throws Exception {
        ServerSocket s = new ServerSocket(Integer.parseInt(args[0]), 1024,
                InetAddress.getLoopbackAddress());
        Runtime.getRuntime().addShutdownHook(new Thread(() ->
                System.out.println("hook " + served + " " + overflows)));
        while (true) {
            Socket c = s.accept();
            /* Stacks of several sizes, which are used again. */
            new Thread(null, () -> serve(c), "connection", (c.getPort() % 3) << 20).start();
        }
    }

    static int deep(int n) {
        return deep(n + 1) + 1;
    }

    static void serve(Socket c) {
        try (c) {
            BufferedReader in = new BufferedReader(new InputStreamReader(c.getInputStream()));
            OutputStream out = new BufferedOutputStream(c.getOutputStream());
            String line;
            while ((line = in.readLine()) != null) {
                int n = Integer.parseInt(line.split(" ")[1].substring(1));
                while (!in.readLine().isEmpty())
                    ;
                garbage = new byte[n * 50];
                if (n % 20 == 0) {
                    try {
                        deep(0);
                    } catch (StackOverflowError e) {
                        overflows.incrementAndGet();
                    }
                }
                boolean last = n % 7 == 0;
                out.write(("HTTP/1.1 200 OK\r\nContent-Length: " + n + "\r\n" +
                        (last ? "Connection: close\r\n" : "") + "\r\n").getBytes());
                out.write("x".repeat(n).getBytes());
                out.flush();
                served.incrementAndGet();
                if (last)
                    return;
            }
        } catch (IOException e) {
        }
    }
}
END
cat >"$work/Client.java" <<'END'
import java.net.*;
import java.net.http.*;
import java.util.*;
import java.util.concurrent.*;

public class Client {
    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        ExecutorService pool = Executors.newFixedThreadPool(16);
        List<Future<Integer>> answers = new ArrayList<>();
        long wanted = 0, got = 0;
        for (int i = 0; i < 600; i++) {
            int n = i * 37 % 900 + 1;
            HttpRequest request = HttpRequest.newBuilder(
                    URI.create("http://127.0.0.1:" + args[0] + "/" + n)).build();
            wanted += n;
            answers.add(pool.submit(() -> client.send(request,
                    HttpResponse.BodyHandlers.ofString()).body().length()));
        }
        for (Future<Integer> answer : answers)
            got += answer.get();
        Thread sleeper = new Thread(() -> {
            try {
                Thread.sleep(100000);
            } catch (InterruptedException e) {
                System.out.println("interrupted");
            }
        });
        sleeper.start();
        Thread.sleep(20);
        sleeper.interrupt();
        sleeper.join();
        Process child = new ProcessBuilder("sh", "-c", "exit 3").start();
        System.out.println("child " + child.waitFor());
        System.exit(got == wanted ? 7 : 1);
    }
}
END
javac -d "$work" "$work/Server.java" "$work/Client.java" >"$work/javac.log" 2>&1 ||
	die 'javac failed'
port=$(free_port)
begin server "${fiberized[@]}" java -Xmx256m -cp "$work" Server "$port"
server=$started
wait_for_port "$server" "$port"
limited "${fiberized[@]}" java -Xmx256m -cp "$work" Client "$port" >"$work/client.log" 2>&1
same 'exit status of the client' 7 $?
has 'a sleeper is interrupted' "$work/client.log" '^interrupted$'
has 'exit status of a child' "$work/client.log" '^child 3$'
same 'no warnings of the JVM' '' "$(grep -h warning "$work/server.log" "$work/client.log")"
kill -QUIT "$server"
eventually grep -q 'JNI global ref' "$work/server.log"
has 'a dump by SIGQUIT' "$work/server.log" '^"main"'
limited jstack "$server" >"$work/jstack.log" 2>&1
has 'jstack' "$work/jstack.log" '^"main"'
stop "$server" 143
has 'shutdown hook' "$work/server.log" '^hook 600 [1-9]'
finish
