# frozen_string_literal: true

require 'openssl'
require_relative 'postgres'

# The Rails secret and a canary row that was encrypted with it. GitLab keeps tokens and settings in the database
# encrypted under secrets.yml; when the Secret gitlab-rails-secret is minted anew, all of that is lost, silently. The
# canary makes such a loss visible: it can be read only with the secret that was there when the database was made.
module RailsSecret
  PLAIN = 'blueprint'
  LOST = 'the mounted gitlab-rails-secret cannot decrypt what this database holds: it was minted anew; ' \
         'restore the old Secret and restart the pods'

  class Lost < StandardError; end

  def self.key(purpose, secrets = Settings.rails_secrets)
    material = secrets.fetch('db_key_base') + secrets.fetch('secret_key_base')
    OpenSSL::KDF.hkdf(material, salt: 'stand-in', info: purpose, length: 32, hash: 'SHA256')
  end

  def self.seal(text, key)
    cipher = OpenSSL::Cipher.new('aes-256-gcm').encrypt
    cipher.key = key
    nonce = cipher.random_iv
    sealed = cipher.update(text) + cipher.final
    [nonce + cipher.auth_tag + sealed].pack('m0')
  end

  def self.unseal(text, key)
    raw = text.unpack1('m')
    cipher = OpenSSL::Cipher.new('aes-256-gcm').decrypt
    cipher.key = key
    cipher.iv = raw[0, 12]
    cipher.auth_tag = raw[12, 16]
    cipher.update(raw[28..]) + cipher.final
  rescue OpenSSL::Cipher::CipherError
    raise Lost, LOST
  end

  # Writes the canary when there is none; an old one stays, whatever the secret is now.
  def self.plant
    Postgres.rows('insert into stand_in_canary (id, sealed) values (1, $1) on conflict (id) do nothing', [seal(PLAIN, key('canary'))])
  end

  def self.check
    sealed = Postgres.value('select sealed from stand_in_canary where id = 1') or raise Lost, 'no canary yet: the migrations have not run'
    unseal(sealed, key('canary')) == PLAIN or raise Lost, LOST
    'the Rails secret fits the database'
  end
end
