# frozen_string_literal: true

require 'json'
require 'openssl'
require 'securerandom'
require_relative 'settings'

# Bearer tokens for the container registry, signed with the chart's registry key. The registry (distribution v3) knows
# that key by the RFC 7638 thumbprint of its certificate's public key.
module RegistryToken
  LIFETIME_SECONDS = 300
  PUBLIC_PREFIX = 'public/'

  def self.base64(bytes) = [bytes].pack('m0').tr('+/', '-_').delete('=')

  def self.thumbprint(key)
    json = %({"e":"#{base64(key.e.to_s(2))}","kty":"RSA","n":"#{base64(key.n.to_s(2))}"})
    base64(OpenSSL::Digest::SHA256.digest(json))
  end

  # What of the asked scopes is granted: everything to an administrator, pull below public/ to anybody.
  def self.granted(scopes, admin:)
    scopes.filter_map do |scope|
      match = scope.match(/\A(?<type>[a-z]+)(\([a-z]+\))?:(?<name>.+):(?<actions>[^:]*)\z/) or next
      asked = match[:actions].split(',')
      actions = if admin then asked
                elsif match[:type] == 'repository' && match[:name].start_with?(PUBLIC_PREFIX) then asked & ['pull']
                else [] end
      {type: match[:type], name: match[:name], actions: actions} unless actions.empty?
    end
  end

  def self.sign(access, subject:, service:, issuer:, key:, now: Time.now.to_i)
    header = {typ: 'JWT', alg: 'RS256', kid: thumbprint(key)}
    claims = {iss: issuer, sub: subject, aud: service, iat: now, nbf: now - 5, exp: now + LIFETIME_SECONDS, jti: SecureRandom.uuid, access: access}
    signed = [header, claims].map { |part| base64(JSON.generate(part)) }.join('.')
    "#{signed}.#{base64(key.sign('SHA256', signed))}"
  end

  # Issuer and key as gitlab.yml names them.
  def self.for(access, subject:, service:)
    registry = Settings.gitlab.fetch('registry')
    sign(access, subject: subject, service: service, issuer: registry.fetch('issuer'), key: OpenSSL::PKey::RSA.new(File.read(registry.fetch('key'))))
  end
end
