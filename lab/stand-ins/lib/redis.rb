# frozen_string_literal: true

require 'socket'
require 'timeout'
require 'uri'

# As much of the Redis protocol as a check needs: AUTH and PING.
module Redis
  SECONDS = 3

  # `address` is host:port or a redis:// URL; a password in the URL is used unless one is given.
  def self.check(address, password: nil)
    uri = URI(address.include?('://') ? address : "redis://#{address}")
    password ||= uri.password && URI.decode_www_form_component(uri.password)
    Timeout.timeout(SECONDS) do
      Socket.tcp(uri.host, uri.port || 6379, connect_timeout: SECONDS) do |socket|
        expect(socket, '+OK', 'AUTH', password) if password && !password.empty?
        expect(socket, '+PONG', 'PING')
      end
    end
    "#{uri.host} PONG"
  end

  def self.expect(socket, wanted, *words)
    socket.write("*#{words.length}\r\n" + words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" }.join)
    answer = socket.gets.to_s.strip
    raise "redis answered #{words.first} with '#{answer}'" unless answer.start_with?(wanted)
  end
  private_class_method :expect
end
