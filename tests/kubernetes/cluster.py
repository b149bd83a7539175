#!/usr/bin/python3
# SPDX-License-Identifier: MIT
#
# tests/kubernetes/cluster.py PORT-FILE VERSION API [ARCH...] - answers what "fiberize kubernetes --cluster" asks:
# as a cluster of that version, which has MutatingAdmissionPolicy in API (v1, v1beta1 or none), with a node of each
# architecture; without any, nodes may not be listed.

import http.server
import json
import os
import socketserver
import sys

port_file, version, api, *archs = sys.argv[1:]
group = '/apis/admissionregistration.k8s.io/'


def status(code, reason):
    return code, {'kind': 'Status', 'apiVersion': 'v1', 'status': 'Failure', 'reason': reason, 'code': code,
                  'message': 'nodes is forbidden' if code == 403 else 'the server could not find it'}


def resources(of):
    names = ['validatingadmissionpolicies'] + (['mutatingadmissionpolicies'] if of == api else [])
    return 200, {'kind': 'APIResourceList', 'apiVersion': 'v1', 'groupVersion': 'admissionregistration.k8s.io/' + of,
                 'resources': [{'name': name, 'namespaced': False} for name in names]}


def answer(path):
    if path == '/version':
        return 200, {'major': '1', 'gitVersion': version}
    if path in (group + 'v1', group + api):
        return resources(path[len(group):])
    if path == '/api/v1/nodes':
        if not archs:
            return status(403, 'Forbidden')
        return 200, {'kind': 'NodeList', 'apiVersion': 'v1', 'items': [
            {'status': {'nodeInfo': {'architecture': arch}}} for arch in archs]}
    return status(404, 'NotFound')


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        code, body = answer(self.path.split('?')[0])
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


# HTTPServer would ask the name service for our name.
server = socketserver.TCPServer(('127.0.0.1', 0), Handler)
with open(port_file + '.new', 'w') as out:
    out.write(str(server.server_address[1]))
os.rename(port_file + '.new', port_file)
server.serve_forever()
