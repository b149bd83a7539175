// SPDX-License-Identifier: MIT
// An echo server: sends back each message, with a thread for each connection.
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

public class Echo {
    public static void main(String[] args) throws Exception {
        ServerSocket s = new ServerSocket(Integer.parseInt(args[0]), 1024,
                InetAddress.getLoopbackAddress());
        while (true) {
            Socket c = s.accept();
            c.setTcpNoDelay(true);
            new Thread(() -> serve(c)).start();
        }
    }

    static void serve(Socket c) {
        byte[] buffer = new byte[8192];
        int n;
        try (c; InputStream in = c.getInputStream(); OutputStream out = c.getOutputStream()) {
            while ((n = in.read(buffer)) > 0)
                out.write(buffer, 0, n);
        } catch (java.io.IOException e) {
            return;
        }
    }
}
