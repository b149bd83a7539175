# SPDX-License-Identifier: MIT
#
# tests/fleet/server.py PORT - a thread for each connection; GET /N is answered by N, a line end and N
# letters, in one write.
import http.server
import signal
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = -1

    def do_GET(self):
        with lock:
            count[0] += 1
        n = int(self.path[1:])
        body = b'%d\n' % n + b'x' * n
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


lock = threading.Lock()
count = [0]
signal.signal(signal.SIGTERM, lambda *args: sys.exit(0))
Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
