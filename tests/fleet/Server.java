/* SPDX-License-Identifier: MIT */
/*
 * tests/fleet/Server.java PORT - a thread for each connection; GET /N is answered by N, a line end and N
 * letters, in one write.
 */
import java.io.*;
import java.net.*;

public class Server {
    static long count;

    public static void main(String[] args) throws Exception {
        ServerSocket s = new ServerSocket(Integer.parseInt(args[0]), 1024, InetAddress.getByName("127.0.0.1"));

        while (true) {
            Socket c = s.accept();
            new Thread(() -> serve(c)).start();
        }
    }

    static synchronized void count() {
        count++;
    }

    static void serve(Socket c) {
        try (c) {
            BufferedReader in = new BufferedReader(new InputStreamReader(c.getInputStream()));
            OutputStream out = new BufferedOutputStream(c.getOutputStream(), 65536);
            String line;
            while ((line = in.readLine()) != null) {
                int n = Integer.parseInt(line.split(" ")[1].substring(1));
                while (!in.readLine().isEmpty())
                    ;
                count();
                String body = n + "\n" + "x".repeat(n);
                out.write(("HTTP/1.1 200 OK\r\nContent-Length: " + body.length() + "\r\n\r\n" + body).getBytes());
                out.flush();
            }
        } catch (IOException e) {
        }
    }
}
