# frozen_string_literal: true

require 'socket'
require_relative 'log'

# grpc.health.v1.Health/Check in bare HTTP/2 (RFC 9113), enough for kubelet's gRPC probe: every request, whatever it
# asks for, is answered with the state that the block gives. Request headers need no decoding for that.
module GrpcHealth
  DATA = 0
  HEADERS = 1
  SETTINGS = 4
  PING = 6
  GOAWAY = 7
  END_STREAM = 1
  ACK = 1
  END_HEADERS = 4
  PREFACE_BYTES = 24
  SERVING = 1
  NOT_SERVING = 2

  def self.serve(port, &serving)
    server = TCPServer.new('0.0.0.0', port)
    say "listening on #{port} (gRPC health)"
    loop { Thread.new(server.accept) { |socket| converse(socket, serving) } }
  end

  def self.converse(socket, serving)
    return unless socket.read(PREFACE_BYTES)&.bytesize == PREFACE_BYTES

    socket.write(frame(SETTINGS, 0, 0, ''))
    while (head = socket.read(9))&.bytesize == 9
      length = "\0#{head[0, 3]}".b.unpack1('N')
      type, flags = head[3, 2].unpack('CC')
      stream = head[5, 4].unpack1('N') & 0x7fffffff
      payload = length.zero? ? '' : socket.read(length)
      case type
      when SETTINGS then socket.write(frame(SETTINGS, ACK, 0, '')) if flags & ACK == 0
      when PING then socket.write(frame(PING, ACK, 0, payload)) if flags & ACK == 0
      when GOAWAY then break
      when DATA, HEADERS then socket.write(answer(stream, serving.call)) if flags & END_STREAM == END_STREAM
      end
    end
  rescue SystemCallError, IOError
    nil # the prober went away
  ensure
    socket.close
  end
  private_class_method :converse

  # Response headers, one length-prefixed HealthCheckResponse, trailers.
  def self.answer(stream, serving)
    message = [0, 2, 0x08, serving ? SERVING : NOT_SERVING].pack('CNCC')
    frame(HEADERS, END_HEADERS, stream, "\x88".b + literal('content-type', 'application/grpc')) +
      frame(DATA, 0, stream, message) +
      frame(HEADERS, END_HEADERS | END_STREAM, stream, literal('grpc-status', '0'))
  end

  def self.frame(type, flags, stream, payload)
    [payload.bytesize].pack('N')[1..].b + [type, flags, stream].pack('CCN') + payload.b
  end

  # A header field that is neither indexed nor Huffman coded (RFC 7541, 6.2.2).
  def self.literal(name, value) = "\x00".b + [name.bytesize].pack('C') + name.b + [value.bytesize].pack('C') + value.b
  private_class_method :literal
end
