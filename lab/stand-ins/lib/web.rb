# frozen_string_literal: true

require 'json'
require 'uri'
require 'webrick'
require_relative 'log'

# A small web server: routes by method and path, answers as arrays. WEBrick does the protocol.
module Web
  JSON_TYPE = 'application/json'
  METRICS = [200, {'content-type' => 'text/plain; version=0.0.4'}, "stand_in_up 1\n"].freeze

  # What a handler answers: [status, headers, body].
  def self.json(status, value) = [status, {'content-type' => JSON_TYPE}, value.nil? ? '' : JSON.generate(value)]
  def self.text(status, value) = [status, {'content-type' => 'text/plain'}, "#{value}\n"]
  def self.html(status, value, headers = {}) = [status, {'content-type' => 'text/html; charset=utf-8', **headers}, value]
  def self.redirect(path, headers = {}) = [302, {'location' => path, 'content-type' => 'text/html', **headers}, '']

  # The body, empty where there is none: WEBrick would answer 411 to a POST without a length.
  def self.body(request)
    request.body.to_s
  rescue WEBrick::HTTPStatus::LengthRequired
    ''
  end

  # Parameters of the query and of a JSON, form or multipart body.
  def self.parameters(request)
    found = URI.decode_www_form(request.query_string.to_s).to_h
    text = body(request)
    return found if text.empty?

    case request['content-type'].to_s
    when /json/ then found.merge(JSON.parse(text))
    when %r{multipart/form-data} then found.merge(request.query.transform_values(&:to_s))
    else found.merge(URI.decode_www_form(text).to_h)
    end
  rescue JSON::ParserError, ArgumentError
    found
  end

  # User and password of a Basic header, or nil.
  def self.basic(request)
    scheme, encoded = request['authorization'].to_s.split(' ', 2)
    return nil unless scheme&.casecmp?('basic') && encoded

    encoded.unpack1('m').force_encoding('UTF-8').split(':', 2)
  end

  # Serves `routes` on `port` in a thread. A route's key is 'GET /path', '/path' (any method) or '*'; its value an
  # answer or something to call with the request.
  def self.serve(port, routes)
    quiet = WEBrick::Log.new($stderr, WEBrick::Log::ERROR)
    server = WEBrick::HTTPServer.new(Port: port, BindAddress: '0.0.0.0', AccessLog: [], Logger: quiet, DoNotReverseLookup: true)
    server.mount('/', Servlet, routes)
    say "listening on #{port}"
    Thread.new { server.start }
  end

  class Servlet < WEBrick::HTTPServlet::AbstractServlet
    def initialize(server, routes)
      super(server)
      @routes = routes
    end

    def service(request, response)
      method = request.request_method == 'HEAD' ? 'GET' : request.request_method
      route = @routes["#{method} #{request.path}"] || @routes[request.path] || @routes['*'] || Web.text(404, 'not found')
      status, headers, body = route.respond_to?(:call) ? route.call(request) : route
    rescue StandardError => e
      say "#{request.request_method} #{request.path}: #{e.class}: #{e.message.lines.first&.strip}"
      status, headers, body = Web.json(500, {message: '500 Internal Server Error'})
    ensure
      response.status = status
      headers.each { |name, value| name == 'set-cookie' ? Array(value).each { |cookie| response.cookies << cookie } : response[name] = value }
      response.body = body
    end
  end

  # WEBrick reads a body for POST and PUT only; runners send one with DELETE as well.
  WEBrick::HTTPRequest.class_eval do
    remove_const(:BODY_CONTAINABLE_METHODS)
    const_set(:BODY_CONTAINABLE_METHODS, %w[POST PUT PATCH DELETE].freeze)
  end

  # Ends the process on the signals that kubelet and the chart's preStop hooks send, `after` so many seconds of serving on.
  def self.stop_on_signals(after: 0)
    %w[TERM INT].each do |signal|
      trap(signal) do
        exit!(0) if after.zero? || @stopping
        @stopping = true
        Thread.new { sleep(after) && exit!(0) }
      end
    end
  end

  # Whether a signal to stop has come.
  def self.stopping? = @stopping == true
end
