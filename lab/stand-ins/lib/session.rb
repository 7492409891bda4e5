# frozen_string_literal: true

require 'json'
require 'openssl'
require 'securerandom'
require_relative 'rails_secret'

# The session cookie: its content signed under the Rails secret, so it survives a restart and dies with a lost secret.
module Session
  NAME = '_gitlab_session'

  def self.read(request)
    cookie = request.cookies.find { |one| one.name == NAME } or return {}
    body, mark = cookie.value.split('.', 2)
    return {} unless mark && OpenSSL.secure_compare(mark, signature(body))

    JSON.parse(body.tr('-_', '+/').unpack1('m'))
  rescue JSON::ParserError
    {}
  end

  # The set-cookie header for `content`.
  def self.write(content)
    body = [JSON.generate(content)].pack('m0').tr('+/', '-_').delete('=')
    "#{NAME}=#{body}.#{signature(body)}; path=/; HttpOnly; SameSite=Lax"
  end

  def self.signature(body) = OpenSSL::HMAC.hexdigest('SHA256', RailsSecret.key('session'), body)
  private_class_method :signature
end
