# SPDX-License-Identifier: MIT
# An echo server with a thread for each connection.
require "socket"
server = TCPServer.new("127.0.0.1", ARGV[0].to_i)
server.listen(256)
loop do
  Thread.new(server.accept) do |connection|
    loop { connection.write(connection.readpartial(4096)) }
  rescue EOFError, SystemCallError
    connection.close
  end
end
